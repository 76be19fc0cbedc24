"""Page of the stream that a model reads, with its cache points: foldable and live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from textual.binding import Binding, BindingType

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import sanitize_for_display
from antiphon.render.wrap import line_ranges
from antiphon.screens.panels import Panel
from antiphon.session import Session
from antiphon.widgets.block_list import CellChange
from antiphon.widgets.status import StatusSpan
from antiphon_kernel.types.signal import Signal

LAST_ITEMS: Final = 500
"""Items at the end of the stream that are shown."""

FOLD_FROM: Final = 12
"""Items with so many lines are folded at first."""


class ReadingPanel(Panel):
    """The items that a model reads, asked for again when the document has changed."""

    heading = "What models read"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,enter", "fold", "fold", priority=True),
        Binding("z", "fold_all", "all"),
        Binding("f1,w,question_mark", "dismiss", show=False),
    ]

    def __init__(self, session: Session, model: str | None, changed: Signal[CellChange]) -> None:
        """`model` is the principal of the model that reads; None: the only one here."""
        super().__init__(session)
        self._model = model
        self._items: Sequence[Mapping[str, Any]] = ()
        self._left_out = 0
        """Earlier items, which are not shown."""
        self._folds: dict[str, bool] = {}
        """Folds that the person has chosen, by item."""
        self._is_stale = True
        self._stop = changed.listen(self._document_changed)

    def on_unmount(self) -> None:
        self._stop()

    def _document_changed(self, change: CellChange) -> None:
        self._is_stale = True

    def refresh_entries(self) -> None:
        if self._is_stale:
            super().refresh_entries()

    async def fetch(self) -> None:
        """Ask for the items: folds stay, and the choice does unless it is the last item."""
        self._is_stale = False
        context = self.kernel.session.document.context
        params: dict[str, Any] = {"context": context, "last": LAST_ITEMS}
        if self._model is not None:
            params["model"] = self._model
        layout = await self.kernel.call(
            "context.layout", params, "What models read cannot be shown"
        )
        if layout is None:
            return
        was_last = self.chosen in (None, *self.ids[-1:])
        self._items = layout["items"]
        self._left_out = layout["count"] - len(self._items)
        self.ids = [_key(item) for item in self._items]
        if layout.get("model"):
            self.heading = f"What {layout['model']} reads"
        if was_last and self.ids:
            self.choose_id(self.ids[-1])
            self._page.scroll_end(animate=False)

    def head_rows(self, index: int, theme: CellTheme) -> list[list[StatusSpan]]:
        if index or not self._left_out:
            return [[]] if index else []
        return [[StatusSpan(f"… {self._left_out} earlier items", theme.dim)], []]

    def entry_rows(self, index: int, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        item = self._items[index]
        lines = [sanitize_for_display(line.expandtabs()) for line in item["text"].split("\n")]
        folded = len(lines) - 1 if self._is_folded(item) else 0
        rows: list[list[StatusSpan]] = []
        for number, line in enumerate(lines[:1] if folded else lines):
            style = theme.heading_3 if number == 0 and line.startswith("[") else theme.text
            ranges = line_ranges(line, max(1, width))
            rows += [[StatusSpan(line[start:end], style)] for start, end in ranges]
        if folded:
            rows.append([StatusSpan(f"… {folded} more lines", theme.dim)])
        if item["cache_points"]:
            points = ", ".join(item["cache_points"]).replace("_", "-")
            rows.append([StatusSpan(f"── cached up to here: {points} ", theme.unread)])
        return rows

    def _is_folded(self, item: Mapping[str, Any]) -> bool:
        is_long: bool = item["text"].count("\n") >= FOLD_FROM
        return self._folds.get(_key(item), is_long)

    def action_fold(self) -> None:
        item = next((one for one in self._items if _key(one) == self.chosen), None)
        if item is None:
            self.hint("There is nothing that a model reads.")
        elif "\n" not in item["text"]:
            self.hint("This has only one line.")
        else:
            self._folds[_key(item)] = not self._is_folded(item)
            self._page.reload()

    def action_fold_all(self) -> None:
        if not any("\n" in item["text"] for item in self._items):
            self.hint("There is nothing to fold.")
        fold = not all(map(self._is_folded, self._items))
        self._folds = {_key(item): fold for item in self._items}
        self._page.reload()


def _key(item: Mapping[str, Any]) -> str:
    return f"{item['type'] == 'turn.header'} {item['block_id']}"
