"""Contexts of the kernel, open files, the project as a tree, and the people of this context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partialmethod
from typing import ClassVar, Final, NamedTuple, Protocol

from rich.style import Style
from textual import events
from textual.binding import BindingType

from antiphon.actions import Owner
from antiphon.keymap import bindings
from antiphon.project_files import KernelFile
from antiphon.project_tree import PROJECT, ROOT, TreeRow, folder_of
from antiphon.render.display import displayable_in_a_row
from antiphon.widgets.status import Participant, Row, StatusRows, StatusSpan
from antiphon.widgets.status.line import end_of
from antiphon_kernel.types.roles import AccessRole

WIDTH: Final = 24

CELL_SIGN: Final = "¶"
"""Before the number of a cell."""

FORK_SIGN: Final = "└ "
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
    ahead: int = 0
    behind: int = 0
    """Of a fork: blocks that it, and that its source, has changed since they parted."""
    drifted_from: str = ""
    """Labels of the contexts whose drifts have come here, with commas."""

    @property
    def drifted(self) -> str:
        """How far a fork and its source are apart: `↑3 ↓1`; empty if they are not."""
        counts = (("↑", self.ahead), ("↓", self.behind))
        return " ".join(f"{sign}{count}" for sign, count in counts if count)


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
"""Contexts that are shown however many people there are, and entries of an open tree."""

OTHER_ROWS: Final = 5
"""Headings, and the empty rows between the lists."""

MOST_FILES: Final = 12
MOST_BESIDE_TREE: Final = 4
"""Open files that are shown at most, while the tree is closed and while it is open."""

MOST_DEPTH: Final = 6
"""Columns that an entry of the tree is moved in at most."""

SCROLLED: Final = 3
"""Entries by which a step of the mouse's wheel goes on."""

_NOTHING: Final = StatusSpan("", Style())

_MARKS: Final[Mapping[str, str]] = {"A": "status_done", "?": "dim", "•": "dim"}
"""Styles of marks of the tree, by what git says."""


class SidebarHost(Protocol):
    """Does what the sidebar's keys and clicks ask for, by ids of its entries."""

    def open_context(self, context: str) -> None: ...

    def fold(self, folder: str, *, opens: bool | None = None) -> None: ...

    def follow(self, principal: str) -> None: ...

    def hint(self, text: str) -> None: ...


class Sidebar(StatusRows, can_focus=True):
    """The contexts, and below them the files that are open, the project and the people.

    They are drawn by hand: to show where six people are takes an `OptionList` five times as long,
    and people move with every key of theirs.
    """

    DEFAULT_CSS = f"""
    Sidebar {{ width: {WIDTH}; height: 100%; display: none; }}
    Sidebar.-open {{ display: block; }}
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(Owner.SIDEBAR)]

    blank_columns = 1

    host: SidebarHost

    def __init__(self) -> None:
        super().__init__()
        self._contexts: Sequence[tuple[ContextName, str]] = ()
        self.chosen = ""
        """Id of the context that Enter opens."""
        self._here = self._file_here = ""
        """Ids of the context that is on the screen and, in the tree, of its file."""
        self._people: Sequence[tuple[Participant, str]] = ()
        self._files: Sequence[KernelFile] = ()
        self._tree: Sequence[TreeRow] = PROJECT
        self._shown = self._shown_tree = range(0)
        """Places of the contexts, and of the entries of the tree, for which there is room."""
        self._row_ids: list[str] = []
        """The entry that a click on each row opens; empty for none."""

    def show_contexts(
        self,
        contexts: Sequence[ContextName],
        here: str,
        files: Sequence[KernelFile] = (),
        tree: Sequence[TreeRow] = PROJECT,
    ) -> None:
        """Show contexts, the id of the one on the screen, the open files, and the project."""
        self._contexts, self._here = tuple(context_entries(contexts)), here
        self._file_here = next((f"/{one.path}" for one in files if one.context == here), "")
        self._files = files[: MOST_BESIDE_TREE if tree[0].is_open else MOST_FILES]
        self._tree = tree
        if self.chosen not in self._ids():
            self.chosen = here
        self._layout_rows()

    def _ids(self) -> list[str]:
        contexts = (one.id for one, _ in self._contexts)
        return [*contexts, *(one.context for one in self._files), *(one.id for one in self._tree)]

    def _step(self, step: int) -> None:
        before, ids = self.chosen, self._ids()
        at = ids.index(before) if before in ids else 0
        self.chosen = ids[max(0, min(at + step, len(ids) - 1))]
        self._layout_rows()
        if self.chosen == before and abs(step) == 1:
            end = "last" if step > 0 else "first"
            self.host.hint(f"This is the {end} of the list.")

    action_next_context = partialmethod(_step, 1)
    action_previous_context = partialmethod(_step, -1)

    def action_open_context(self) -> None:
        self.host.open_context(self.chosen)

    def action_open_folder(self) -> None:
        before = self.chosen
        folder = self.chosen = before if before[-1:] == "/" else ROOT
        if not any(one.is_open for one in self._tree if one.id == folder):
            self.host.fold(folder, opens=True)
            return
        self._step(1)
        if self.chosen == before != folder:
            self.host.hint("This is a file: <key:open_context> opens it.")

    def action_close_folder(self) -> None:
        row = next((one for one in self._tree if one.id == self.chosen), None)
        if row is None:
            self.host.hint("Only the project and its folders close.")
        elif row.is_open:
            self.host.fold(row.id, opens=False)
        elif row.id == ROOT:
            self.host.hint("The project is closed: <key:open_folder> opens it.")
        else:
            self.chosen = folder_of(row.id)
            self._layout_rows()

    def on_mouse_scroll_down(self) -> None:
        self._step(SCROLLED)

    def on_mouse_scroll_up(self) -> None:
        self._step(-SCROLLED)

    def on_focus(self) -> None:
        self._layout_rows()

    def on_blur(self) -> None:
        self.chosen = self._here
        self._layout_rows()

    def on_click(self, event: events.Click) -> None:
        if clicked := "".join(self._row_ids[event.y : event.y + 1]):
            self.chosen = clicked
            self.host.open_context(clicked)
        first = len(self._rows) - len(self._people)
        if first <= event.y < len(self._rows):
            person, _ = self._people[event.y - first]
            if not person.is_me:
                self.host.follow(person.principal)

    def show_people(self, people: Sequence[tuple[Participant, str]]) -> None:
        """Show people, each with their place."""
        self._people = people
        self._layout_rows()

    def _new_rows(self) -> list[Row]:
        self._share_room()
        theme, rows, self._row_ids = self.cell_theme, list[Row](), []
        chosen = self.chosen if self.has_focus else ""

        def add(
            id: str = "", left: Sequence[StatusSpan] = (), right: StatusSpan = _NOTHING
        ) -> None:
            rows.append((left, [right] if right.text else []))
            self._row_ids.append(id)

        def add_entry(id: str, before: str, name: str, right: StatusSpan) -> None:
            is_here = id in (self._here, self._file_here)
            bar = "┃ " if id == chosen else "▸ " if is_here else "  "
            label = StatusSpan(name, theme.text if is_here or id == chosen else theme.dim)
            add(id, [StatusSpan(bar, theme.focus), StatusSpan(before, theme.dim), label], right)

        is_cut = len(self._shown) < len(self._contexts)
        total = f"of {len(self._contexts)}" if is_cut else ""
        add("", [StatusSpan("contexts", theme.dim)], StatusSpan(total, theme.dim))
        for context, mark in (self._contexts[place] for place in self._shown):
            unread = f"●{context.unread}" if context.unread and context.id != self._here else ""
            apart = f"{context.drifted} {unread}".strip()
            look = theme.unread if unread else theme.dim
            add_entry(context.id, mark, context.label, StatusSpan(apart, look))
        add()
        if self._files:
            add("", [StatusSpan("files", theme.dim)])
            for file in self._files:
                path = end_of(displayable_in_a_row(file.path), WIDTH - 6 - len(file.mark))
                add_entry(file.context, "", path, StatusSpan(file.mark, theme.unread))
            add()
        for at in (0, *(place + 1 for place in self._shown_tree)):
            row = self._tree[at]
            sign = "▾ " if row.is_open else "▸ "
            if not at:
                style = theme.focus if row.id == chosen else theme.dim
                add(row.id, [StatusSpan(f"project {sign}", style)])
                continue
            before = " " * min(row.depth - 1, MOST_DEPTH) + (sign if row.is_folder else "  ")
            right = StatusSpan(row.mark, getattr(theme, _MARKS.get(row.mark, "unread")))
            add_entry(row.id, before, displayable_in_a_row(row.name), right)
        add()
        cell = StatusSpan(f"{CELL_SIGN} cell", theme.dim)
        add("", [StatusSpan("people", theme.dim)], cell)
        for person, place in self._people:
            author = theme.author(person.colour)
            present = person.is_me or bool(person.doing) or person.block is not None
            presence = StatusSpan("● " if present else "○ ", author)
            add("", [presence, StatusSpan(person.name, author)], StatusSpan(place, theme.dim))
        return rows

    def _share_room(self) -> None:
        """Give the contexts and the tree the rows that people and open files leave."""
        ids, count, below = self._ids(), len(self._contexts), len(self._tree) - 1
        files = len(self._files) and len(self._files) + 2
        room = self.size.height - len(self._people) - files - OTHER_ROWS
        at = ids.index(self.chosen) if self.chosen in ids else 0
        most = max(LEAST_CONTEXTS, room - below, room // 3)
        self._shown = _window(self._shown, min(at, count - 1), most, count)
        most = max(LEAST_CONTEXTS, room - len(self._shown))
        at -= len(ids) - below
        at = at if at >= 0 else self._shown_tree.start
        self._shown_tree = _window(self._shown_tree, at, most, below)


def _window(before: range, at: int, most: int, count: int) -> range:
    """Return the places of at most so many of `count` entries, that of one among them."""
    first = max(0, min(max(before.start, at - most + 1), at, count - most))
    return range(first, min(first + most, count))
