"""Contexts of the kernel and people of this context, with where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from textual.strip import Strip
from textual.widget import Widget

from antiphon.modes import Mode
from antiphon.render.cell_theme import CellTheme
from antiphon.status.line import Piece, fit
from antiphon.status.people import Person

WIDTH: Final = 24

WIDE: Final = 120
"""Columns of the terminal from which the sidebar is there unless it was put away."""


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """One line of the list of people."""

    person: Person
    place: str
    """`¶5 tail`; empty if the person is in no cell."""


def whereabouts(person: Person, number: int | None, mode: Mode) -> Whereabouts:
    """Where somebody is; `number` is their cell's, from 1, and `mode` that of this screen."""
    if person.is_me:
        place = mode.value if number is None else f"¶{number} {mode.value}"
    elif person.streaming:
        place = "writing" if number is None else f"¶{number} tail"
    else:
        place = person.doing if number is None else f"¶{number} {person.doing}".rstrip()
    return Whereabouts(person, place)


class Sidebar(Widget):
    """Drawn line by line; redrawn only when it says something else."""

    DEFAULT_CSS = f"""
    Sidebar {{ width: {WIDTH}; height: 100%; display: none; }}
    Sidebar.-open {{ display: block; }}
    """

    def __init__(self, theme: CellTheme, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._theme = theme
        self._contexts: tuple[str, ...] = ()
        self._here = ""
        self._people: tuple[Whereabouts, ...] = ()

    def set_cell_theme(self, theme: CellTheme) -> None:
        self._theme = theme
        self.refresh()

    def show_contexts(self, labels: Sequence[str], here: str) -> None:
        """The kernel's contexts, and which of them is on screen."""
        if (tuple(labels), here) != (self._contexts, self._here):
            self._contexts, self._here = tuple(labels), here
            self.refresh()

    def show_people(self, people: Sequence[Whereabouts]) -> None:
        """Who is here and where."""
        if tuple(people) != self._people:
            self._people = tuple(people)
            self.refresh()

    def render_line(self, y: int) -> Strip:
        rows = self._rows()
        left, right = rows[y] if y < len(rows) else ((), ())
        page = self._theme.background
        return fit(left, right, self.size.width - 1, page).adjust_cell_length(WIDTH, page)

    def _rows(self) -> list[tuple[Sequence[Piece], Sequence[Piece]]]:
        theme = self._theme
        rows: list[tuple[Sequence[Piece], Sequence[Piece]]] = [
            ([Piece("contexts", theme.dim)], ()),
        ]
        for label in self._contexts or (self._here,):
            here = label == self._here
            mark = Piece("▸ ", theme.focus) if here else Piece("  ", theme.dim)
            rows.append(([mark, Piece(label, theme.text if here else theme.dim)], ()))
        rows.append(((), ()))
        rows.append(([Piece("people", theme.dim)], ()))
        for one in self._people:
            person = one.person
            author = theme.author(person.colour)
            present = person.is_me or bool(person.doing) or person.block is not None
            mark = Piece("● " if present else "○ ", author)
            rows.append(([mark, Piece(person.name, author)], [Piece(one.place, theme.dim)]))
        return rows
