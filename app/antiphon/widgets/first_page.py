"""The page of a context in which nothing has been written yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from textual.reactive import reactive
from textual.strip import Strip

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import displayable_in_a_row
from antiphon.widgets.status import StatusSpan, cut_to
from antiphon.widgets.status.line import fit, wrap_words
from antiphon.widgets.themed import ThemedWidget

WIDTH: Final = 64

_KEY_COLUMNS: Final = 10


class FirstPageContent(NamedTuple):
    """Everything that the page says."""

    keys: Sequence[tuple[str, str]]
    """Three keys, and what they do."""
    answers: Sequence[str]
    """Names of the models that answer, or advice on how to get one."""
    contexts: Sequence[tuple[str, str]]
    """Other contexts, the latest first, each with a note."""


class FirstPage(ThemedWidget):
    """Says what this is, which keys to press, who answers, and what else there is."""

    DEFAULT_CSS = """
    FirstPage { layer: above; dock: top; width: 100%; height: 100%; display: none; }
    FirstPage.-shown { display: block; }
    """

    content: reactive[FirstPageContent | None] = reactive(None)
    """None: something has been written, and the page is not there."""

    def watch_content(self, content: FirstPageContent | None) -> None:
        self.set_class(content is not None, "-shown")

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        page = self.cell_theme.background
        if self.content is None:
            return Strip.blank(width, page)
        columns = min(WIDTH, width - 4)
        title, *introduction = _introduction(columns, self.cell_theme)
        below = list(_rows(self.content, columns, self.cell_theme))
        rows = [title, *introduction, [], *below]
        if len(rows) > height:
            rows = [title, *filter(None, below)]
        row = y - max(0, (height - len(rows)) // 2)
        spans = rows[row] if 0 <= row < len(rows) else ()
        margin = max(2, (width - WIDTH) // 2)
        return fit(spans, (), width, page, margin=margin)


def _introduction(width: int, theme: CellTheme) -> Iterator[Sequence[StatusSpan]]:
    """Yield the name, and the sentences of what this is, for which there may be no room."""
    yield [StatusSpan("antiphon", theme.heading_1)]
    for line, style in (
        ("People and models write in one document, at the same time.", theme.text),
        ("Any cell can be edited, also while a model writes in it.", theme.dim),
    ):
        for part in wrap_words(line, width):
            yield [StatusSpan(part, style)]


def _rows(
    content: FirstPageContent, width: int, theme: CellTheme
) -> Iterator[Sequence[StatusSpan]]:
    for key, does in content.keys:
        for number, part in enumerate(wrap_words(does, max(1, width - _KEY_COLUMNS))):
            shown = ("" if number else key).ljust(_KEY_COLUMNS)
            yield [StatusSpan(shown, theme.focus), StatusSpan(part, theme.text)]
    yield []
    for line in content.answers:
        for part in wrap_words(displayable_in_a_row(line), width):
            yield [StatusSpan(part, theme.dim)]
    if content.contexts:
        yield []
        yield [StatusSpan("Other contexts", theme.dim)]
        for label, note in content.contexts:
            name = cut_to(displayable_in_a_row(label), width - 16).ljust(_KEY_COLUMNS)
            yield [StatusSpan(name, theme.text), StatusSpan(f"  {note}", theme.unread)]
