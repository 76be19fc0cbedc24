"""Contexts of the kernel, files that are open, and people of this context, with where they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

from textual import events
from textual.binding import BindingType
from textual.message import Message

from antiphon.actions import Owner
from antiphon.keymap import bindings
from antiphon.render.display import displayable_in_a_row
from antiphon.widgets.status import Participant, Row, StatusRows, StatusSpan
from antiphon.widgets.status.line import end_of
from antiphon_kernel.types.roles import AccessRole

WIDTH: Final = 24

CELL_SIGN: Final = "¶"
"""Before the number of a cell."""

FORK_SIGN: Final = "⑂ "
"""Before the label of a fork."""

MOST_INDENTED: Final = 8
"""Columns that a label is moved in at most."""

WIDE: Final = 120
"""Columns of the terminal from which the sidebar is there unless it was put away."""


class ContextName(NamedTuple):
    """A context of the kernel."""

    id: str
    label: str
    version: int = 0
    unread: int = 0
    """Blocks that others have changed since the person was there."""
    source: str | None = None
    """Id of the context that it is a fork of."""
    changed_at: str = ""
    """Time of the last change: ISO 8601, UTC."""
    is_archived: bool = False


class FileName(NamedTuple):
    """A file that is open."""

    id: str
    """Id of its context."""
    path: str
    mark: str
    """How it differs from the disk, `!` for a conflict, and from the last commit, as git says."""

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> FileName:
        """Return the file that `file.status` tells of."""
        state = "!" if told["state"] else "●" if told["dirty"] else ""
        return cls(told["context_id"], told["path"], state + told.get("mark", "").strip()[:1])


def context_entries(contexts: Sequence[ContextName]) -> Iterator[tuple[ContextName, str]]:
    """Yield contexts with their forks below them; forks of what is not listed stand by themselves.

    Contexts and forks of one context come in the order in which they are given. Each has a mark
    that stands before the label of a fork: the deeper, the further in.
    """
    listed = {one.id for one in contexts}
    roots = [one for one in contexts if one.source not in listed]
    rows = [(one, FORK_SIGN if one.source else "") for one in reversed(roots)]
    while rows:
        context, mark = rows.pop()
        yield context, mark
        mark = f"{mark.replace(FORK_SIGN, '  ')}{FORK_SIGN}"[-MOST_INDENTED:]
        forks = [one for one in contexts if one.source == context.id]
        rows += [(one, mark) for one in reversed(forks)]


_TOLD_ROLES: Final = frozenset({AccessRole.OWNER, AccessRole.VIEWER})
"""Roles that are told of others: whom to ask, and who only reads."""


def place_of(person: Participant, number: int | None, mode: str) -> str:
    """Return the place of a person: `¶5 tail`; empty if that is no cell.

    `number` is that of their cell, from 1, and `mode` that of this screen.
    """
    if person.is_me:
        words = mode
    elif person.streaming and number is not None:
        words = "tail"
    else:
        words = person.doing or (person.role if person.role in _TOLD_ROLES else "")
    cell = "" if number is None else f"{CELL_SIGN}{number}"
    return f"{cell} {words}".strip()


LEAST_CONTEXTS: Final = 3
"""Contexts that are shown however many people there are."""

OTHER_ROWS: Final = 3
"""Headings, and the empty row between the lists."""

MOST_FILES: Final = 12
"""Files that are shown at most."""


class Sidebar(StatusRows, can_focus=True):
    """The contexts, and below them the files that are open and the people.

    They are drawn by hand: to show where six people are takes an `OptionList` five times as long,
    and people move with every key of theirs.
    """

    DEFAULT_CSS = f"""
    Sidebar {{ width: {WIDTH}; height: 100%; display: none; }}
    Sidebar.-open {{ display: block; }}
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Owner.SIDEBAR)]

    blank_columns = 1

    @dataclass
    class ContextChosen(Message):
        """A context of the list is to be opened; `context` is its id."""

        context: str

    @dataclass
    class EndReached(Message):
        """There is no context in the direction of a step; `reason` is a sentence."""

        reason: str

    @dataclass
    class PersonClicked(Message):
        """Somebody else of the list was clicked; `principal` is their id."""

        principal: str

    def __init__(self) -> None:
        super().__init__()
        self._contexts: Sequence[tuple[ContextName, str]] = ()
        self.chosen = ""
        """Id of the context that Enter opens."""
        self._here = ""
        self._people: Sequence[tuple[Participant, str]] = ()
        self._files: Sequence[FileName] = ()
        self._shown = range(0)
        """Places of the contexts for which there is room."""

    def show_contexts(
        self, contexts: Sequence[ContextName], here: str, files: Sequence[FileName] = ()
    ) -> None:
        """The kernel's contexts, the id of the one that is on screen, and the open files."""
        self._contexts, self._here = tuple(context_entries(contexts)), here
        self._files = files[:MOST_FILES]
        if self.chosen not in self._ids():
            self.chosen = here
        self._layout_rows()

    def action_next_context(self) -> None:
        self._step(1)

    def action_previous_context(self) -> None:
        self._step(-1)

    def _ids(self) -> list[str]:
        return [*(one.id for one, _ in self._contexts), *(one.id for one in self._files)]

    def _step(self, step: int) -> None:
        before, ids = self.chosen, self._ids()
        if ids:
            at = ids.index(before) if before in ids else 0
            self.chosen = ids[max(0, min(at + step, len(ids) - 1))]
        self._layout_rows()
        if self.chosen == before:
            end = "last" if step > 0 else "first"
            self.post_message(self.EndReached(f"This is the {end} context."))

    def action_open_context(self) -> None:
        self.post_message(self.ContextChosen(self.chosen))

    def on_focus(self) -> None:
        self._layout_rows()

    def on_blur(self) -> None:
        self.chosen = self._here
        self._layout_rows()

    def on_click(self, event: events.Click) -> None:
        if 0 < event.y <= len(self._shown):
            context, _ = self._contexts[self._shown[event.y - 1]]
            self.post_message(self.ContextChosen(context.id))
        at = event.y - len(self._shown) - OTHER_ROWS
        if 0 <= at < len(self._files):
            self.post_message(self.ContextChosen(self._files[at].id))
        first = len(self._rows) - len(self._people)
        if first <= event.y < len(self._rows):
            person, _ = self._people[event.y - first]
            if not person.is_me:
                self.post_message(self.PersonClicked(person.principal))

    def show_people(self, people: Sequence[tuple[Participant, str]]) -> None:
        """Show people, each with their place."""
        self._people = people
        self._layout_rows()

    def _new_rows(self) -> list[Row]:
        theme = self.cell_theme
        # The contexts that leave room for the people, the chosen one among them.
        files = len(self._files) and len(self._files) + 2
        room = max(LEAST_CONTEXTS, self.size.height - len(self._people) - files - OTHER_ROWS)
        ids, count = self._ids(), len(self._contexts)
        at = min(ids.index(self.chosen), count - 1) if self.chosen in ids and count else 0
        first = min(max(self._shown.start, at - room + 1), at, max(0, count - room))
        self._shown = range(first, min(first + room, count))
        is_cut = len(self._shown) < len(self._contexts)
        total = [StatusSpan(f"of {count}", theme.dim)] if is_cut else []
        rows: list[Row] = [([StatusSpan("contexts", theme.dim)], total)]
        for context, mark in (self._contexts[place] for place in self._shown):
            here, chosen = context.id == self._here, self.has_focus and context.id == self.chosen
            bar = "┃ " if chosen else "▸ " if here else "  "
            label = StatusSpan(context.label, theme.text if here or chosen else theme.dim)
            fork = StatusSpan(mark, theme.dim)
            unread = f"●{context.unread}" if context.unread and not here else ""
            right = [StatusSpan(unread, theme.unread)] if unread else []
            rows.append(([StatusSpan(bar, theme.focus), fork, label], right))
        rows.append(((), ()))
        if self._files:
            rows.append(([StatusSpan("files", theme.dim)], ()))
        for file in self._files:
            here, chosen = file.id == self._here, self.has_focus and file.id == self.chosen
            bar = "┃ " if chosen else "▸ " if here else "  "
            path = end_of(displayable_in_a_row(file.path), WIDTH - 6 - len(file.mark))
            label = StatusSpan(path, theme.text if here or chosen else theme.dim)
            right = [StatusSpan(file.mark, theme.unread)] if file.mark else []
            rows.append(([StatusSpan(bar, theme.focus), label], right))
        rows += [((), ())] if self._files else []
        rows.append(
            ([StatusSpan("people", theme.dim)], [StatusSpan(f"{CELL_SIGN} cell", theme.dim)])
        )
        for person, place in self._people:
            author = theme.author(person.colour)
            present = person.is_me or bool(person.doing) or person.block is not None
            presence = StatusSpan("● " if present else "○ ", author)
            rows.append(
                ([presence, StatusSpan(person.name, author)], [StatusSpan(place, theme.dim)])
            )
        return rows
