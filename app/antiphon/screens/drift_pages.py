"""Pages before something drifts: the cells that go, what a commit changes, and a merge by steps."""

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
from textual.content import Content
from textual.widgets import OptionList, TextArea
from textual.widgets.option_list import Option

from antiphon.render.cell_theme import CellTheme
from antiphon.render.differences import difference_rows, patch_lines
from antiphon.render.display import displayable_in_a_row, sanitize_for_display
from antiphon.screens.conflicts import ConflictsModal
from antiphon.screens.modals import HintingModal, TextPage
from antiphon.widgets.status import KeyLines, StatusSpan
from antiphon_kernel.text.merge_edits import EditConflict, Excerpt, Resolution
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.types.quoting import count_of

_WAKE: Final = "wake"

_LINES_AROUND: Final = 2
"""Lines that are shown on either side of one that is marked."""

Mark = tuple[int, int, Style]
"""Code points of a text from one to another, and how they look; later ones lie over earlier."""

_KEYS: Final = (("n p", "next, before"), ("Enter", "merge"), ("Esc", "leave"))


class CellsModal(HintingModal[dict[str, Any] | None]):
    """Lets a person tick cells; returns what a drift of them is to be told."""

    DEFAULT_CSS = """
    CellsModal OptionList, CellsModal OptionList:focus {
        border: none; height: 1fr; background: transparent;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "tick", show=False, priority=True),
        Binding("enter", "go", show=False, priority=True),
        Binding("escape,q,ctrl+c", "dismiss(None)", show=False, priority=True),
    ]

    def __init__(self, does: str, cells: Mapping[str, str], chosen: str | None) -> None:
        """`does` is what Enter does, in words."""
        super().__init__()
        self._rows = {**cells, _WAKE: "Models answer"}
        self._ticked = {_WAKE} | (cells.keys() & {chosen})
        self._list = OptionList(*(Option(self._shown(one), one) for one in self._rows))
        first = chosen if chosen and chosen in cells else [_WAKE, *cells][-1]
        self._list.highlighted = self._list.get_option_index(first)
        keys = (("Space", "tick"), ("Enter", f"{does} (nothing ticked: the last answer)"))
        self.shown = (self._list, KeyLines((*keys, ("Esc", "leave"))))

    def _shown(self, row: str) -> Content:
        sign = "☑ " if row in self._ticked else "☐ "
        return Content(sign + displayable_in_a_row(self._rows[row]))

    def action_tick(self) -> None:
        option = self._list.highlighted_option
        if option is not None and option.id is not None:
            self._ticked ^= {option.id}
            self._list.replace_option_prompt(option.id, self._shown(option.id))

    def action_go(self) -> None:
        blocks = [one for one in self._rows if one in self._ticked and one != _WAKE]
        self.dismiss({"wake": _WAKE in self._ticked} | ({"blocks": blocks} if blocks else {}))


class DifferenceModal(HintingModal[bool]):
    """Shows what would be changed in files; returns whether to do it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "dismiss(True)", show=False, priority=True),
        Binding("escape,q,ctrl+c", "dismiss(False)", show=False, priority=True),
    ]

    def __init__(self, patch: str, does: str) -> None:
        """`does` is what Enter does, in words."""
        super().__init__()
        self._lines = patch_lines(patch)
        keys = (("Enter", does), ("Esc", "change nothing"))
        self.shown = (TextPage(self._rows), KeyLines(keys))

    def _rows(self, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        paths = ", ".join(dict.fromkeys(line.path for line in self._lines))
        rows = [[StatusSpan(f"Commit into {displayable_in_a_row(paths)}", theme.heading_2)], []]
        for row in difference_rows(self._lines, width, theme):
            rows.append([StatusSpan(piece.text, piece.style) for piece in row])
        return rows


class MergeModal(ConflictsModal[dict[str, Any]]):
    """Returns what `drift.merge` is to be told, once every conflict is decided."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "tick", show=False, priority=True),
        Binding("c", "conclude", show=False),
        Binding("e", "take('')", show=False),
        Binding("enter", "merge", show=False, priority=True),
        Binding("escape,q,ctrl+c", "leave", show=False, priority=True),
    ]

    def __init__(self, preview: Mapping[str, Any]) -> None:
        """`preview` is the answer of `drift.preview`."""
        steps = [
            (change, conflict)
            for change in preview["changes"]
            for conflict in change["conflicts"] or [None]
        ]
        super().__init__([*steps, *((offer, None) for offer in preview["offers"])], ())
        self._preview = preview
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
        name = f"Merge {told['source_label']} into {told['target_label']}"
        place = f"   {self._at + 1} of {len(self._steps)}"
        rows = [[StatusSpan(name, theme.heading_2), StatusSpan(place, theme.dim)]]
        archive = ("c", f"{'☑' if self._concludes else '☐'} archive the fork"), *_KEYS
        if (is_taken := self._taken.get(step["source_block"])) is not None:
            self._keys.keys = (("Space", "tick"), *archive)
            sign = "☑ comes along" if is_taken else "☐ stays in the fork"
            what = f"new {step['kind'].replace('_', ' ')} by {step['username']}"
            words = f" · {what} · {count_of(step['tokens'], 'token')}"
            rows += [[StatusSpan(sign, theme.unread), StatusSpan(words, theme.dim)], []]
            return [*rows, *marked_rows(step["text"], (), width, theme)]
        target, look = told["target_label"], theme.status_done
        after, new = self._outcome(step, self._decided, theme)
        if conflict is None:
            self._keys.keys, state = archive, "✓ only the fork has changed this"
            title, text = f"{target}, as it is", step["before"]
            old = [(*one, theme.removed_surface) for one in _differences(after, text)]
        else:
            self._keys.keys = (("o t b", "ours, theirs, both"), ("e", "write it"), *archive)
            theirs = {one["number"]: {"side": "theirs"} for one in step["conflicts"]}
            title = f"{target}, with the words of {told['source_label']}"
            text, old = self._outcome(step, theirs, theme)
            if (decided := self._decided.get(conflict["number"])) is not None:
                state = f"✓ decided: {decided.get('side', 'written anew')}"
            else:
                state, look = "? both have changed this: take a side", theme.status_failed
        rows += [[StatusSpan(state, look), StatusSpan(f" · {step['name']}", theme.dim)], []]
        room = (width - 3) // 2
        left = [[StatusSpan(title, theme.unread)], *marked_rows(text, old, room, theme)]
        title = f"{target}, as it would become"
        right = [[StatusSpan(title, theme.status_done)], *marked_rows(after, new, room, theme)]
        for one, other in zip_longest(left, right, fillvalue=list[StatusSpan]()):
            used = sum(cell_len(part.text) for part in one)
            rows.append([*one, StatusSpan(" " * (room - used) + " │ ", theme.dim), *other])
        return rows

    def _outcome(
        self, change: Mapping[str, Any], decided: Mapping[int, Mapping[str, str]], theme: CellTheme
    ) -> tuple[str, list[Mark]]:
        """Return the text that a change leads to, ours where nothing is decided, and its marks."""
        text, places, shift = change["after"], list[Mark](), 0
        _, here = self._steps[self._at]
        for one in change["conflicts"]:
            taken = _text_of(one, decided.get(one["number"], {"side": "ours"}))
            start, end = one["start"] + shift, one["end"] + shift
            text = f"{text[:start]}{taken}{text[end:]}"
            look = theme.hit_current if one is here else theme.hit
            places.append((start, start + len(taken), look))
            shift += len(taken) - (end - start)
        changed = ((*one, theme.edit_surface) for one in _differences(change["before"], text))
        return text, [*changed, *places]


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
    text: str, marks: Sequence[Mark], width: int, theme: CellTheme
) -> Iterator[list[StatusSpan]]:
    """Yield the lines of a text that have marks, and those around them; all if none has."""
    console, shown = get_console(), Text(sanitize_for_display(text), theme.text, tab_size=4)
    marked = set[int]()
    for low, high, style in marks:
        shown.stylize(style, low, high)
        marked |= {*range(text.count("\n", 0, low), text.count("\n", 0, high) + 1)}
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
