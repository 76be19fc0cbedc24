"""Page of the stream that a model reads, with its cache points: foldable and live."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import sanitize_for_display
from antiphon.render.wrap import line_ranges
from antiphon.screens.background_tasks import BackgroundTaskMixin
from antiphon.screens.modals import HintingModal, TextPage
from antiphon.widgets.status import StatusSpan, key_rows

REFRESH_SECONDS: Final = 0.5
"""How long a change may go unshown."""

LAST_ITEMS: Final = 500
"""Items at the end of the stream that are shown."""

FOLD_FROM: Final = 12
"""Items with so many lines are folded at first."""

_KEYS: Final = (("↑ ↓", "item"), ("Space", "fold"), ("z", "all"), ("Esc", "leave"))

_NOTHING: Final = "There is nothing that a model reads."

Layout = Mapping[str, Any]
"""Result of `context.layout`."""

Ask = Callable[[], Awaitable[Layout | None]]
"""Answers what is read now; None if that cannot be said."""


Listen = Callable[[Callable[[], None]], Callable[[], None]]
"""Has a function called with each change of the document; returns the way to stop."""


class ReadingPage(TextPage):
    """The items, one of which is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "choose(-1)", show=False),
        Binding("down,j", "choose(1)", show=False),
        Binding("g", "choose_end(0)", show=False),
        Binding("G", "choose_end(-1)", show=False),
        Binding("space,enter", "fold", show=False),
        Binding("z", "fold_all", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(self._item_rows)
        self._layout: Layout = {"items": [], "count": 0}
        self._chosen: str | None = None
        """Key of the chosen item."""
        self._folds: dict[str, bool] = {}
        """Folds that the person has chosen, by item."""
        self._tops: dict[str, int] = {}
        """First row of each item."""

    def show(self, layout: Layout) -> None:
        """Show another state: folds stay, and the choice does unless it is the last item."""
        was_last = self._chosen is None or self._keys[-1:] == [self._chosen]
        self._layout = layout
        if was_last or self._chosen not in self._keys:
            self._chosen = self._keys[-1] if self._keys else None
        self.reload()
        if was_last:
            self.scroll_end(animate=False)

    @property
    def _items(self) -> Sequence[Mapping[str, Any]]:
        items: Sequence[Mapping[str, Any]] = self._layout["items"]
        return items

    @property
    def _keys(self) -> list[str]:
        return [_key(item) for item in self._items]

    def action_choose(self, step: int) -> None:
        keys = self._keys
        index = keys.index(self._chosen) if self._chosen in keys else 0
        self._choose(min(max(0, index + step), len(keys) - 1))

    def action_choose_end(self, index: int) -> None:
        self._choose(index)

    def action_fold(self) -> None:
        item = next((one for one in self._items if _key(one) == self._chosen), None)
        if item is None:
            self.hint(_NOTHING)
        elif "\n" not in item["text"]:
            self.hint("This has only one line.")
        else:
            self._folds[_key(item)] = not self._is_folded(item)
            self.reload()

    def action_fold_all(self) -> None:
        if not any("\n" in item["text"] for item in self._items):
            self.hint("There is nothing to fold.")
        fold = not all(map(self._is_folded, self._items))
        self._folds = {_key(item): fold for item in self._items}
        self.reload()

    def _choose(self, index: int) -> None:
        if not self._keys:
            self.hint(_NOTHING)
            return
        key = self._keys[index]
        if key == self._chosen:
            self.hint(f"This is the {'first' if key == self._keys[0] else 'last'} of them.")
        self._chosen = key
        self.reload()
        top = self._tops.get(key, 0)
        if not self.scroll_y <= top < self.scroll_y + self.size.height - 2:
            self.scroll_to(y=max(0, top - 2), animate=False)

    def _is_folded(self, item: Mapping[str, Any]) -> bool:
        is_long: bool = item["text"].count("\n") >= FOLD_FROM
        return self._folds.get(_key(item), is_long)

    def _item_rows(self, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        model = self._layout.get("model")
        title = f"What {model} reads" if model else "What models read"
        rows = [*key_rows(_KEYS, width, theme, [StatusSpan(title, theme.heading_2)]), []]
        left_out = self._layout["count"] - len(self._items)
        if left_out:
            rows += [[StatusSpan(f"  … {left_out} earlier items", theme.fold)], []]
        self._tops.clear()
        for item in self._items:
            self._tops[_key(item)] = len(rows)
            is_chosen = _key(item) == self._chosen
            bar = StatusSpan("▌ " if is_chosen else "  ", theme.focus)
            rows += [[bar, *row] for row in self._text_rows(item, width - 2, theme)]
            if item["cache_points"]:
                points = ", ".join(item["cache_points"]).replace("_", "-")
                rows.append([StatusSpan(f"── cached up to here: {points} ", theme.unread)])
            rows.append([])
        return rows

    def _text_rows(
        self, item: Mapping[str, Any], width: int, theme: CellTheme
    ) -> list[list[StatusSpan]]:
        lines = [sanitize_for_display(line.expandtabs()) for line in item["text"].split("\n")]
        folded = len(lines) - 1 if self._is_folded(item) else 0
        rows: list[list[StatusSpan]] = []
        for number, line in enumerate(lines[:1] if folded else lines):
            style = theme.heading_3 if number == 0 and line.startswith("[") else theme.text
            ranges = line_ranges(line, max(1, width))
            rows += [[StatusSpan(line[start:end], style)] for start, end in ranges]
        if folded:
            rows.append([StatusSpan(f"… {folded} more lines", theme.fold)])
        return rows


def _key(item: Mapping[str, Any]) -> str:
    return f"{item['type'] == 'turn.header'} {item['block_id']}"


class ReadingModal(BackgroundTaskMixin[None], HintingModal[None]):
    """Page of a stream that is asked for again when the document has changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q,w,question_mark", "dismiss", show=False),
    ]

    def __init__(self, ask: Ask, listen: Listen) -> None:
        super().__init__()
        self._ask = ask
        self._listen = listen
        self._page = ReadingPage()
        self._changed = asyncio.Event()

    def compose(self) -> ComposeResult:
        yield self._page

    def on_mount(self) -> None:
        self._stop = self._listen(self._changed.set)
        self.run_worker(self._follow(), exit_on_error=False)

    def on_unmount(self) -> None:
        self._stop()

    async def _follow(self) -> None:
        while True:
            self._changed.clear()
            layout = await self._ask()
            if layout is not None:
                self._page.show(layout)
            await self._changed.wait()
            await asyncio.sleep(REFRESH_SECONDS)
