"""A merge before it is done: what a fork has changed, step by step, and what is new in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, ClassVar, Final

from rich import get_console
from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.widgets import TextArea

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import sanitize_for_display
from antiphon.screens.conflicts import ConflictsModal
from antiphon.screens.modals import HintingModal
from antiphon.widgets.status import KeyLines, StatusSpan
from antiphon_kernel.text.merge3 import Excerpt, Resolution
from antiphon_kernel.text.merge_edits import EditConflict
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.types.quoting import count_of

BESIDE_FROM: Final = 118
"""Columns of the page from which source and target stand beside each other."""

_LINES_AROUND: Final = 2
"""Lines that are shown on either side of one that is marked."""

_DECIDED: Final = {"ours": "ours stays", "theirs": "theirs is taken", "both": "both are taken"}

_CONFLICT_KEYS: Final = (("o t b", "ours, theirs, both"), ("e", "write it"))
_OFFER_KEYS: Final = (("Space", "tick"),)
_KEYS: Final = (("n p", "next, before"), ("Enter", "merge"), ("Esc", "leave"))


class MergeModal(ConflictsModal[dict[str, Any]]):
    """Returns what `drift.merge` is to be told, once every conflict is decided."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "tick", show=False, priority=True),
        Binding("c", "conclude", show=False),
        Binding("enter", "merge", show=False, priority=True),
        Binding("escape,q,ctrl+c", "leave", show=False, priority=True),
    ]

    def __init__(self, preview: Mapping[str, Any], texts: Mapping[str, str]) -> None:
        """`preview` is the answer of `drift.preview`; `texts` are those of blocks in conflict."""
        steps = [
            (change, conflict)
            for change in preview["changes"]
            for conflict in change["conflicts"] or [None]
        ]
        super().__init__([*steps, *((offer, None) for offer in preview["offers"])], ())
        self._preview = preview
        self._sources = texts
        self._decided: dict[int, Mapping[str, str]] = {}
        """Of each conflict, by its number: a side, or the text that stands there."""
        self._taken = {one["source_block"]: True for one in preview["offers"]}
        self._concludes = self._is_leaving = False

    # What is decided

    def action_take(self, side: str) -> None:
        _, conflict = self._steps[self._at]
        if conflict is None:
            self.hint("There is no conflict here.")
        elif side:
            self._decided[conflict["number"]] = {"side": side}
            self._page.reload()
        else:
            self.run_in_background(partial(self._write, conflict))

    def action_edit(self) -> None:
        self.action_take("")

    async def _write(self, conflict: Mapping[str, Any]) -> None:
        number = conflict["number"]
        text = _text_of(conflict, self._decided.get(number, {"side": "both"}))
        written = await self.app.push_screen_wait(EditModal(text))
        if written != text:
            self._decided[number] = {"text": written}
            self._page.reload()

    def action_tick(self) -> None:
        block = self._steps[self._at][0]["source_block"]
        if block in self._taken:
            self._taken[block] = not self._taken[block]
            self._page.reload()
        else:
            self.hint("This is no new cell: what the fork has changed in it is merged.")

    def action_conclude(self) -> None:
        self._concludes = not self._concludes
        self._page.reload()

    def action_leave(self) -> None:
        """Leave; what was written is not lost by one key."""
        if self._is_leaving or not any("text" in one for one in self._decided.values()):
            self.dismiss(None)
        else:
            self._is_leaving = True
            self.hint("What you have written here is lost then: Esc leaves all the same.")

    def action_merge(self) -> None:
        for at, (_, conflict) in enumerate(self._steps):
            if conflict is not None and conflict["number"] not in self._decided:
                self._go(at)
                self.hint("Decide this conflict first.")
                return
        told = {
            "blocks": [block for block, is_taken in self._taken.items() if is_taken],
            "resolve": {str(number): one for number, one in self._decided.items()},
        }
        self.dismiss(told | {"conclude": self._concludes, "plan": self._preview["plan"]})

    # What is shown

    def _rows(self, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        (step, conflict), told = self._steps[self._at], self._preview
        keys = () if "after" in step else _OFFER_KEYS
        archive = f"{'☑' if self._concludes else '☐'} archive the fork"
        self._keys.keys = (*(keys if conflict is None else _CONFLICT_KEYS), ("c", archive), *_KEYS)
        place = f"   {self._at + 1} of {len(self._steps)}"
        if conflict is not None:
            place += f" · conflict {conflict['number'] + 1} of {told['conflicts']}"
        name = f"Merge {told['source_label']} into {told['target_label']}"
        rows = [[StatusSpan(name, theme.heading_2), StatusSpan(place, theme.dim)]]
        if (is_taken := self._taken.get(step["source_block"])) is not None:
            sign = "☑ comes along" if is_taken else "☐ stays in the fork"
            what = f"new {step['kind'].replace('_', ' ')} by {step['username']}"
            words = f" · {what} · {count_of(step['tokens'], 'token')}"
            rows += [[StatusSpan(sign, theme.unread), StatusSpan(words, theme.dim)], []]
            return [*rows, *marked_rows(step["text"], (), width, theme)]
        state = ("✓ only the fork has changed this", theme.status_done)
        if conflict is not None and conflict["number"] in self._decided:
            side = self._decided[conflict["number"]].get("side", "")
            state = (f"✓ {_DECIDED.get(side, 'it is written anew')}", theme.status_done)
        elif conflict is not None:
            state = ("? both have changed this: take a side", theme.status_failed)
        rows.append([StatusSpan(*state), StatusSpan(f" · {step['name']}", theme.dim)])
        before, (after, places) = step["before"], self._outcome(step)
        new = [(*one, theme.edit_surface) for one in _differences(before, after)]
        for number, place_of in places.items():
            is_here = conflict is not None and conflict["number"] == number
            new.append((*place_of, theme.hit_current if is_here else theme.hit))
        is_beside = width >= BESIDE_FROM
        room = (width - 3) // 2 if is_beside else width
        title, text, ground = f"{told['target_label']}, as it is", before, theme.removed_surface
        if conflict is not None:
            title, text = f"in {told['source_label']}", self._sources[step["source_block"]]
            ground = theme.edit_surface
        base = after if conflict is None else before
        old = [(*one, ground) for one in _differences(base, text)]
        left = [[StatusSpan(title, theme.unread)], *marked_rows(text, old, room, theme)]
        title = f"{told['target_label']}, as it would become"
        right = [[StatusSpan(title, theme.status_done)], *marked_rows(after, new, room, theme)]
        if not is_beside:
            return [*rows, [], *left, [], *right]
        rows.append([])
        for one, other in zip_longest(left, right, fillvalue=list[StatusSpan]()):
            used = sum(cell_len(part.text) for part in one)
            rows.append([*one, StatusSpan(" " * (room - used) + " │ ", theme.dim), *other])
        return rows

    def _outcome(self, change: Mapping[str, Any]) -> tuple[str, dict[int, tuple[int, int]]]:
        """Return the text that a change leads to, and where each of its conflicts is in it."""
        text, places, shift = change["after"], dict[int, tuple[int, int]](), 0
        for one in change["conflicts"]:
            taken = _text_of(one, self._decided.get(one["number"], {"side": "ours"}))
            start, end = one["start"] + shift, one["end"] + shift
            text = f"{text[:start]}{taken}{text[end:]}"
            places[one["number"]] = start, start + len(taken)
            shift += len(taken) - (end - start)
        return text, places


class EditModal(HintingModal[str]):
    """A text to write; returns it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+s,ctrl+c", "take", show=False, priority=True),
    ]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._area = TextArea(text, compact=True)
        self._area.cursor_blink = False
        self.shown = (self._area, KeyLines((("Esc", "take what stands here"),)))

    def action_take(self) -> None:
        self.dismiss(self._area.text)


def _text_of(conflict: Mapping[str, Any], decision: Mapping[str, str]) -> str:
    """Return what a decision puts in the place of a conflict."""
    if "text" in decision:
        return decision["text"]
    if decision["side"] != Resolution.BOTH:
        return str(conflict[decision["side"]])
    base, ours, theirs = (Excerpt(0, 0, conflict[name]) for name in ("base", "ours", "theirs"))
    return EditConflict(base, ours, theirs, ours, taking=(), preceding=0).both


def _differences(before: str, after: str) -> Iterator[tuple[int, int]]:
    """Yield the places in a text at which another one, before it, is different."""
    for one in plan_difference(before, after):
        yield one.offset, one.offset + len(one.inserted)


def marked_rows(
    text: str, marks: Sequence[tuple[int, int, Style]], width: int, theme: CellTheme
) -> Iterator[list[StatusSpan]]:
    """Yield the lines of a text that have marks, and those around them; all if none has.

    Marks are code points from one to another; later ones lie over earlier ones.
    """
    console, shown = get_console(), Text(sanitize_for_display(text), theme.text, tab_size=4)
    for low, high, style in marks:
        shown.stylize(style, low, high)
    numbers = [(text.count("\n", 0, low), text.count("\n", 0, high)) for low, high, _ in marks]
    marked = {number for first, last in numbers for number in range(first, last + 1)}
    near = {one + by for one in marked for by in range(-_LINES_AROUND, _LINES_AROUND + 1)}
    last = -1
    for number, line in enumerate(shown.split("\n", allow_blank=True)):
        if near and number not in near:
            continue
        if number != last + 1:
            yield [StatusSpan("  …", theme.dim)]
        last = number
        lead = StatusSpan("▎ " if number in marked else "  ", theme.unread)
        for row in line.wrap(console, max(1, width - 2)):
            spans = (StatusSpan(one.text, one.style or theme.text) for one in row.render(console))
            yield [lead, *spans]
