"""Reading of a layout by one model: items, cache points, messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon_kernel.layout.announce import Announcement, announcement_text
from antiphon_kernel.layout.cache_points import CachePoints, cache_points
from antiphon_kernel.layout.items import Layout, LayoutItem
from antiphon_kernel.layout.model_view import (
    BlockPosition,
    ModelView,
    file_sizes,
    file_tokens,
    model_view,
)
from antiphon_kernel.layout.sources import PoolSource, sources_text
from antiphon_kernel.layout.text_forms import LayoutReader, item_text
from antiphon_kernel.layout.visible import EVERYTHING, ContributionFilter, visible
from antiphon_kernel.messages import (
    FileSize,
    Message,
    TextBlock,
    UserMessage,
    check_correlation,
    estimate_text,
)


@dataclass(frozen=True, slots=True)
class LayoutTail:
    """Part behind the stream that is made anew for each request and never cached."""

    sources: tuple[PoolSource, ...] = ()
    announcement: Announcement | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the parts that there are, in order."""
        announced = self.announcement
        sources = (sources_text(self.sources),) if self.sources else ()
        return (*sources, announcement_text(announced)) if announced is not None else sources


@dataclass(frozen=True, slots=True)
class LayoutReading:
    """Part of a layout that one model reads, as it reads it."""

    reader: LayoutReader
    items: tuple[LayoutItem, ...]
    points: CachePoints
    tail: LayoutTail = LayoutTail()

    def text(self, item: LayoutItem) -> str:
        """Return an item of the text stream."""
        return item_text(item, self.reader)

    def tokens(self, item: LayoutItem) -> int:
        """Estimate an item, with the image or document that is attached with it."""
        return estimate_text(self.text(item)) + file_tokens(item)

    def file_sizes(self) -> dict[str, FileSize]:
        """Return the sizes of the images and documents in a request, by hash."""
        return file_sizes(self.items)

    def request(self) -> ModelRequest:
        """Return the messages of a request, with what is marked for the cache.

        Raises:
            CorrelationError: if a call is without its result; never of what `visible` gives.
        """
        view: ModelView = model_view(self.items, self.reader)
        messages = _with_tail(view.messages, self.tail)
        check_correlation(messages)
        return ModelRequest(messages, view.marked(self.points.indices))


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Messages that are sent to a model."""

    messages: tuple[Message, ...] = ()
    marks: tuple[BlockPosition, ...] = ()
    """Content blocks up to which the provider is to keep what it has read."""


def _with_tail(messages: Sequence[Message], tail: LayoutTail) -> tuple[Message, ...]:
    """Return messages with the tail as the end of the last one, or as a message of its own."""
    blocks = tuple(map(TextBlock, tail.texts))
    if not blocks:
        return tuple(messages)
    if messages and isinstance(last := messages[-1], UserMessage):
        return (*messages[:-1], UserMessage((*last.content, *blocks)))
    return (*messages, UserMessage(blocks))


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
