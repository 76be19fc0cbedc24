"""History of a cell or of the page: every version, with who wrote what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import ClassVar, Final

from rich.style import Style
from textual.binding import Binding, BindingType

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import displayable_in_a_row, sanitize_for_display
from antiphon.render.markdown import WIDE_WIDTH
from antiphon.render.timeline import (
    Fate,
    HistoryStep,
    PageHistory,
    Timeline,
    TimelineText,
    VersionPiece,
)
from antiphon.render.wrap import WrapPiece, wrap
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.screens.modals import HintingModal, TextPage
from antiphon.time_format import format_absolute
from antiphon.widgets.status import KeyLines, Row, StatusLine, StatusSpan
from antiphon_kernel.document.rendering import render
from antiphon_kernel.document.schema import is_text

STEPS_KEPT: Final = 20_000
"""Changes of a context whose history is shown, the latest ones."""

STEPS_A_CALL: Final = 1_000

_NO_HISTORY: Final = "The history cannot be read"

FAR: Final = 10
"""Versions that a long step takes."""

_FINDINGS: Final = "check"
"""The operation that says what is found in a file, and leaves its text alone."""

_OPERATIONS: Final = {"sync": "typed"}
"""Words for changes that came by another way than a tool."""

_TAB: Final = "    "

_KEYS: Final = (
    ("← →", "version"),
    ("[ ]", "ten"),
    ("Tab", "{other}"),
    ("r", "restore"),
    ("F", "fork here"),
    ("Esc", "leave"),
)


class HistorySource(Controller):
    """The cells of the page, with all that their texts have held and who wrote it."""

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        document, source = scope.session.document, scope.source
        self.order = [one for one in document.block_ids() if not source.is_hidden(one)]
        self.author = source.shown_name
        self._names = {one: scope.name(one) for one in source.ids()}

    def name(self, block: str) -> str:
        """Return the number of a cell as it was when the history was opened."""
        return self._names.get(block, "¶0")

    def title(self, block: str) -> tuple[str, int]:
        """Return the words above a block, and their colour slot."""
        header = self._source.header(block)
        name, colour = self.author(header.author)
        return f"{name} {self.name(block)} {header.kind.replace('_', ' ')}", colour

    async def steps(self, block: str | None) -> Sequence[HistoryStep] | None:
        """Return the changes of a block, or the latest ones of the context; None if not said."""
        document, found = self._session.document, list[HistoryStep]()
        tool, params = "block.history", {"block_id": block, "limit": STEPS_A_CALL}
        if block is None:
            params = {"context": document.context, "last": STEPS_KEPT, "limit": STEPS_A_CALL}
            tool = "context.history"
        after: int | None = 0
        while after is not None:
            page = await self._scope.call(tool, {**params, "after_version": after}, _NO_HISTORY)
            if page is None:
                return None
            for one in page["versions"]:
                if one["operation"] == _FINDINGS:
                    continue
                version = one["version"] if block is None else one["context_version"]
                blocks = one["blocks"] if block is None else {block: one["version"]}
                who = one["principal"], displayable_in_a_row(one["username"])
                found.append(HistoryStep(version, one["time"], *who, one["operation"], blocks))
            after = page.get("next")
        return found

    async def timeline(self, block: str) -> Timeline | None:
        """Return everything that a block's text has held; None if the kernel does not say."""
        document = self._session.document
        if not is_text(document.schema(block)):
            # Structured content is shown as it is now.
            now = TimelineText(render(document, block), document.header(block).author, 1)
            return Timeline((now,), 1)
        result = await self._scope.call("block.timeline", {"block_id": block}, _NO_HISTORY)
        if result is None:
            return None
        texts = (
            TimelineText(one["text"], one["principal"], one["since"], one.get("until"))
            for one in result["texts"]
        )
        return Timeline(tuple(texts), result["version"])


class _Line(StatusLine):
    """A row of the page."""

    def __init__(self, make: Callable[[int], Row]) -> None:
        super().__init__()
        self._make = make

    def pieces(self, width: int) -> Row:
        return self._make(width)


class HistoryModal(HintingModal[tuple[int, str | None] | None]):
    """Goes through the versions of a cell or of the page.

    Returns a version and the block to restore to it; None in its place to fork the context there.
    """

    DEFAULT_CSS = """
    HistoryModal { layout: vertical; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", show=False, priority=True),
        Binding("right", "step(1)", show=False, priority=True),
        Binding("shift+left,left_square_bracket", f"step(-{FAR})", show=False, priority=True),
        Binding("shift+right,right_square_bracket", f"step({FAR})", show=False, priority=True),
        Binding("home", "go(0)", show=False, priority=True),
        Binding("end", "go(-1)", show=False, priority=True),
        Binding("tab", "other", show=False, priority=True),
        Binding("r", "wish('restore')", show=False),
        Binding("F", "wish('fork')", show=False),
        Binding("escape,q,h,ctrl+c", "dismiss(None)", show=False, priority=True),
    ]

    def __init__(
        self, source: HistorySource, block: str | None, version: int | None = None
    ) -> None:
        """`block` is the cell, None for the page; shown first is a `version` of the context."""
        super().__init__()
        self._source = source
        self._cell = block
        self._until = inf if version is None else version
        self._block = block
        """The cell whose history is shown; None for that of the page."""
        self._known: dict[str | None, PageHistory] = {}
        self._positions = {one: place for place, one in enumerate(source.order)}
        self._timelines: dict[str, Timeline] = {}
        self._missing: dict[str, None] = {}
        self._at = 0
        self._changed_row = 0
        self._top, self._slider = _Line(self._top_spans), _Line(self._slider_spans)
        self._keys = KeyLines()
        self._page = TextPage(self._rows)
        self.shown = (self._top, self._slider, self._page, self._keys)

    def on_mount(self) -> None:
        self._page.focus()
        self._open()

    # Versions

    @property
    def _history(self) -> PageHistory | None:
        return self._known.get(self._block)

    @property
    def step(self) -> HistoryStep | None:
        """The change whose version is shown; None while nothing is known."""
        history = self._history
        return history.steps[self._at] if history is not None and history.steps else None

    def _open(self) -> None:
        self._show()
        self.run_in_background(partial(self._fetch_steps, self._block))

    async def _fetch_steps(self, block: str | None) -> None:
        if block not in self._known:
            steps = await self._source.steps(block)
            if steps is None:
                self.dismiss(None)
                return
            shown = self._positions.keys()
            if block is None and any(shown & step.blocks.keys() for step in steps):
                # A draft's keystrokes make versions of the context, none of the page.
                steps = [step for step in steps if shown & step.blocks.keys()]
            self._known[block] = PageHistory(steps)
        if block == self._block:
            until = [one for one in self._known[block].steps if one.version <= self._until]
            self._at = max(0, len(until) - 1)
            self._show()

    def action_step(self, steps: int) -> None:
        self.action_go(max(0, self._at + steps))

    def action_go(self, at: int) -> None:
        """Show a version; one below 0 is counted from the end."""
        before, last = self._at, max(0, self._count - 1)
        self._at = last if at < 0 else min(at, last)
        if self._history is None:
            self.hint("The versions are being read.")
        elif self._at != before:
            self._show()
        else:
            self.hint(f"This is the {'last' if self._at else 'first'} version.")

    def action_other(self) -> None:
        other = self._focus_block() if self._block is None else None
        if other == self._block:
            self.hint("Nothing of the page has changed in this version.")
            return
        self._block = other
        self._at = 0
        self._open()

    def action_wish(self, wish: str) -> None:
        step, block = self.step, self._focus_block()
        if step is None:
            self.hint("There is no version yet.")
        elif wish == "fork":
            self.dismiss((step.version, None))
        elif block is not None and (version := self._version(block, step)):
            self.dismiss((version, block))
        else:
            self.hint("There was no text of a cell yet.")

    def _focus_block(self) -> str | None:
        """Return the cell that is shown, or that the version of the page has changed."""
        if self._block is not None:
            return self._block
        step = self.step
        changed = [one for one in step.blocks if one in self._positions] if step else []
        return changed[0] if changed else self._cell

    def _version(self, block: str, step: HistoryStep) -> int:
        history, line = self._history, self._timelines.get(block)
        if block in step.blocks:
            return step.blocks[block]
        assert history is not None
        return history.version_at(block, step.version, line.version if line is not None else 1)

    # Drawing

    def _show(self) -> None:
        content = (self._block, self._at, self._count)
        self._top.update_spans(content)
        self._slider.update_spans(content)
        other = "page" if self._block is not None else "cell"
        self._keys.keys = [(key, words.format(other=other)) for key, words in _KEYS]
        self._page.reload()
        self._page.scroll_to(
            y=max(0, self._changed_row - self._page.size.height // 3), animate=False
        )

    async def _fetch_timelines(self) -> None:
        while self._missing:
            block = next(iter(self._missing))
            line = await self._source.timeline(block)
            self._missing.pop(block, None)
            self._timelines[block] = line or Timeline((), 0)
        if self.is_attached:
            self._show()

    @property
    def _count(self) -> int:
        return len(self._history.steps) if self._history is not None else 0

    def _top_spans(self, width: int) -> Row:
        theme, step = self._page.cell_theme, self.step
        words, slot = ("the page", 0) if self._block is None else self._source.title(self._block)
        style = theme.text if self._block is None else theme.author(slot)
        left = [StatusSpan("History of ", theme.heading_2), StatusSpan(words, style)]
        if step is None:
            return left, [StatusSpan("reading…", theme.dim)]
        name, slot = self._source.author(step.principal)
        return left, [
            StatusSpan(
                f"{self._at + 1} of {self._count} · {format_absolute(step.time)} · ", theme.dim
            ),
            StatusSpan(name, theme.author(slot)),
            StatusSpan(f" {_OPERATIONS.get(step.operation, step.operation)}", theme.dim),
        ]

    def _slider_spans(self, width: int) -> Row:
        theme, history, count = self._page.cell_theme, self._history, self._count
        room = max(2, width - 2)
        if history is None or not count:
            return [StatusSpan("─" * room, theme.dim)], ()
        here = self._at * (room - 1) // max(1, count - 1)
        spans: list[StatusSpan] = []
        for column in range(room):
            step = history.steps[min(count - 1, column * count // room)]
            mark = "●" if column == here else "━" if column < here else "─"
            spans.append(StatusSpan(mark, theme.author(self._source.author(step.principal)[1])))
        return spans, ()

    def _rows(self, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        step = self.step
        if step is None or width < 1:
            return []
        focus = self._focus_block()
        if focus is None:
            return [[StatusSpan("Nothing of the page has changed in this version.", theme.dim)]]
        if self._block is not None:
            return self._block_rows(focus, step, width, theme)
        height = max(1, self._page.size.height)
        place = self._positions.get(focus, 0)
        rows = self._page_rows(focus, step, width, theme)
        below = place + 1
        while below < len(self._source.order) and len(rows) < self._changed_row + 2 * height:
            rows += self._page_rows(self._source.order[below], step, width, theme, is_focus=False)
            below += 1
        above = place - 1
        while above >= 0 and self._changed_row < height:
            more = self._page_rows(self._source.order[above], step, width, theme, is_focus=False)
            rows, self._changed_row = more + rows, self._changed_row + len(more)
            above -= 1
        return rows

    def _page_rows(
        self, block: str, step: HistoryStep, width: int, theme: CellTheme, *, is_focus: bool = True
    ) -> list[list[StatusSpan]]:
        """Return the rows of one cell of the page; none if it was not there yet."""
        changed = self._changed_row
        if block in self._timelines and not self._version(block, step):
            return []
        words, slot = self._source.title(block)
        rows = [[StatusSpan(words, theme.author(slot))]]
        rows += self._block_rows(block, step, width, theme)
        rows.append([])
        self._changed_row = self._changed_row + 1 if is_focus else changed
        return rows

    def _block_rows(
        self, block: str, step: HistoryStep, width: int, theme: CellTheme
    ) -> list[list[StatusSpan]]:
        line = self._timelines.get(block)
        self._changed_row = 0
        if line is None:
            self._missing[block] = None
            self.call_later(self.run_one_of, "timelines", self._fetch_timelines)
            return [[StatusSpan("…", theme.dim)]]
        found = line.lines(self._version(block, step), shows_change=block in step.blocks)
        rows: list[list[StatusSpan]] = []
        if found.above:
            rows.append([StatusSpan(f"▴ {found.above:,} lines", theme.dim)])
        for number, pieces in enumerate(found.lines):
            if number == found.changed:
                self._changed_row = len(rows)
            texts = [sanitize_for_display(one.text.replace("\t", _TAB)) for one in pieces]
            styles = [self._style(one, theme) for one in pieces]
            shown = list(map(WrapPiece, texts, styles))
            for row in wrap(shown, min(width, WIDE_WIDTH)):
                rows.append([StatusSpan(part.text, part.style) for part in row])
        if found.below:
            rows.append([StatusSpan(f"▾ {found.below:,} lines", theme.dim)])
        return rows

    def _style(self, piece: VersionPiece, theme: CellTheme) -> Style:
        _, slot = self._source.author(piece.principal)
        style = theme.blame[slot % len(theme.blame)]
        if piece.fate is Fate.NEW:
            return theme.selections[slot % len(theme.selections)] + style + Style(bold=True)
        if piece.fate is Fate.GONE:
            return style + Style(strike=True, dim=True)
        return style
