"""Reading of a layout by one model: items, cache points, messages."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon_kernel.layout.cache_points import CachePoints, cache_points
from antiphon_kernel.layout.items import Layout, LayoutItem
from antiphon_kernel.layout.model_view import BlockPosition, ModelView, model_view
from antiphon_kernel.layout.text_forms import LayoutReader, item_text
from antiphon_kernel.layout.visible import EVERYTHING, ContributionFilter, visible
from antiphon_kernel.messages import Message, check_correlation


@dataclass(frozen=True, slots=True)
class LayoutReading:
    """Part of a layout that one model reads, as it reads it."""

    reader: LayoutReader
    items: tuple[LayoutItem, ...]
    points: CachePoints

    def text(self, item: LayoutItem) -> str:
        """Return an item of the text stream."""
        return item_text(item, self.reader)

    def request(self) -> ModelRequest:
        """Return the messages of a request, with what is marked for the cache.

        Raises:
            CorrelationError: if a call is without its result; never of what `visible` gives.
        """
        view: ModelView = model_view(self.items, self.reader)
        check_correlation(view.messages)
        return ModelRequest(view.messages, view.marked(self.points.indices))


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Messages that are sent to a model."""

    messages: tuple[Message, ...]
    marks: tuple[BlockPosition, ...]
    """Content blocks up to which the provider is to keep what it has read."""


def read_layout(
    layout: Layout,
    model: str | None = None,
    admitted: ContributionFilter = EVERYTHING,
    *,
    live: str | None = None,
    exact: bool = False,
) -> LayoutReading:
    """Return what a model reads.

    Args:
        layout: everything that there is, as `arrange` gives it.
        model: id of the model's principal; the only one that has written, if absent.
        live: id of the turn that is played; the last one if absent.
        exact: leave cache points between a call and its results.
    """
    items = tuple(visible(layout, admitted, live=live).items)
    points = cache_points(items, live=live, exact=exact)
    return LayoutReading(LayoutReader.of(layout, model), items, points)
