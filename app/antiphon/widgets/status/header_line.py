"""Which context this is, who is in it, and whether the kernel is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import displayable
from antiphon.session import Connection, Standing
from antiphon.time_format import in_local_words
from antiphon.widgets.status.line import Piece, StatusLine, cut_to
from antiphon.widgets.status.participants import Person
from antiphon_kernel.types.roles import AccessRole

WITH_PLACE: Final = 60
"""Columns from which on the kernel is named: who is here matters more."""


class HeaderLine(StatusLine):
    """` demo · default   ● you  ● aria writing  ○ guest        live`"""

    def __init__(self, theme: CellTheme, place: str) -> None:
        super().__init__(theme)
        self._place = place
        self._label = ""
        self._people: Sequence[Person] = ()
        self._standing = Standing(Connection.CONNECTING)

    @property
    def context(self) -> str:
        """What the context is called."""
        return self._label

    def show(self, context: str, people: Sequence[Person], standing: Standing) -> None:
        """What the line says from now on."""
        self._label, self._people, self._standing = context, people, standing
        self.say((context, tuple(people), standing))

    def pieces(self, width: int) -> tuple[Sequence[Piece], Sequence[Piece]]:
        theme = self.theme
        right = self._connection_pieces(width)
        place = [Piece(self._place, theme.strong), Piece(" · ", theme.dim)]
        left = [
            *(place if width >= WITH_PLACE else ()),
            Piece(self._label, theme.text),
            Piece("   ", theme.dim),
        ]
        room = width - 4 - sum(cell_len(piece.text) for piece in [*left, *right])
        return [*left, *self._people_pieces(room)], right

    def _people_pieces(self, room: int) -> list[Piece]:
        pieces: list[Piece] = []
        hidden = len(self._people)
        for person in self._people:
            name = Piece(person.name, self.theme.author(person.colour))
            mark = "● " if person.is_me or person.doing or person.block else "○ "
            own = [Piece(mark, self.theme.author(person.colour)), name]
            if person.doing:
                own.append(Piece(f" {person.doing}", self.theme.dim))
            own.append(Piece("  ", self.theme.dim))
            needed = sum(cell_len(piece.text) for piece in own)
            reserve = 3 if hidden > 1 else 0
            if needed + reserve > room:
                break
            room -= needed
            hidden -= 1
            pieces += own
        if hidden and pieces:
            pieces.append(Piece(f"+{hidden}", self.theme.dim))
        return pieces

    def _connection_pieces(self, width: int) -> list[Piece]:
        standing, theme = self._standing, self.theme
        pieces, role = [self._connection_piece(width)], standing.role
        if standing.refused is not None:
            refused = Piece(f"refused: {standing.refused.edits}", theme.status_failed)
            pieces += [Piece(" · ", theme.dim), refused]
        if role is not None and role != AccessRole.OWNER and not standing.is_shut_out:
            style = theme.unread if role == AccessRole.VIEWER else theme.dim
            pieces = [Piece(role, style), Piece(" · ", theme.dim), *pieces]
        return pieces

    def _connection_piece(self, width: int) -> Piece:
        standing, theme = self._standing, self.theme
        if standing.connection is Connection.LIVE:
            return Piece(str(standing.connection), theme.status_done)
        words = str(standing.connection)
        if standing.reason is not None:
            reason = _in_one_line(standing.reason)
            return Piece(cut_to(f"{words}: {reason}", width // 2), theme.status_failed)
        if standing.connection is Connection.OFFLINE and standing.unsaved:
            words += f" · {standing.unsaved} unsaved"
        if standing.connection in (Connection.CONNECTING, Connection.CATCHING_UP):
            return Piece(words, theme.dim)
        return Piece(words if width >= 60 else str(standing.connection), theme.status_failed)


def _in_one_line(reason: str) -> str:
    return displayable(in_local_words(" ".join(reason.split())))
