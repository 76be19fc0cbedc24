"""Header line: the context, who is in it, and whether the kernel is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len

from antiphon.render.display import sanitize_for_display
from antiphon.session import ConnectionStatus, SessionStatus
from antiphon.time_format import format_absolute
from antiphon.widgets.status.line import StatusLine, StatusSpan, cut_to
from antiphon.widgets.status.participants import Participant
from antiphon_kernel.types.roles import AccessRole

WITH_PLACE: Final = 60
"""Columns from which on the kernel is named: who is here matters more."""


class HeaderLine(StatusLine):
    """` demo · default   ● you  ● aria writing  ○ guest        live`"""

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place
        self._label = ""
        self._people: Sequence[Participant] = ()
        self._standing = SessionStatus(ConnectionStatus.CONNECTING)
        self._use = ""

    def name_place(self, place: str) -> None:
        """Call the kernel so from now on."""
        self._place = place

    @property
    def context(self) -> str:
        return self._label

    def show(
        self,
        context: str,
        people: Sequence[Participant],
        standing: SessionStatus,
        use: str = "",
    ) -> None:
        """Show this from now on; `use` is what the model here has used of tokens and money."""
        self._label, self._people, self._standing = context, people, standing
        self._use = use
        self.update_spans((self._place, context, tuple(people), standing, use))

    def pieces(self, width: int) -> tuple[Sequence[StatusSpan], Sequence[StatusSpan]]:
        theme = self.cell_theme
        right = self._connection_pieces(width)
        place = [StatusSpan(self._place, theme.strong), StatusSpan(" · ", theme.dim)]
        left = [
            *(place if width >= WITH_PLACE else ()),
            StatusSpan(self._label, theme.text),
            StatusSpan("   ", theme.dim),
        ]
        room = width - 4 - sum(cell_len(piece.text) for piece in [*left, *right])
        return [*left, *self._people_pieces(room)], right

    def _people_pieces(self, room: int) -> list[StatusSpan]:
        pieces: list[StatusSpan] = []
        hidden = len(self._people)
        for person in self._people:
            name = StatusSpan(person.name, self.cell_theme.author(person.colour))
            mark = "● " if person.is_me or person.doing or person.block else "○ "
            own = [StatusSpan(mark, self.cell_theme.author(person.colour)), name]
            if person.doing:
                own.append(StatusSpan(f" {person.doing}", self.cell_theme.dim))
            own.append(StatusSpan("  ", self.cell_theme.dim))
            needed = sum(cell_len(piece.text) for piece in own)
            reserve = 3 if hidden > 1 else 0
            if needed + reserve > room:
                break
            room -= needed
            hidden -= 1
            pieces += own
        if hidden and pieces:
            pieces.append(StatusSpan(f"+{hidden}", self.cell_theme.dim))
        return pieces

    def _connection_pieces(self, width: int) -> list[StatusSpan]:
        standing, theme = self._standing, self.cell_theme
        pieces, role = [self._connection_piece(width)], standing.role
        if standing.refused is not None:
            edits = standing.refused.edits
            refused = StatusSpan(f"refused: {edits}" if edits else "refused", theme.status_failed)
            pieces += [StatusSpan(" · ", theme.dim), refused]
        if role is not None and role != AccessRole.OWNER and not standing.is_rejected:
            style = theme.unread if role == AccessRole.VIEWER else theme.dim
            pieces = [StatusSpan(role, style), StatusSpan(" · ", theme.dim), *pieces]
        if self._use and width >= WITH_PLACE:
            pieces = [StatusSpan(f"{self._use} · ", theme.dim), *pieces]
        return pieces

    def _connection_piece(self, width: int) -> StatusSpan:
        standing, theme = self._standing, self.cell_theme
        unsaved = f" · {standing.unsaved} unsaved" if standing.unsaved else ""
        if standing.is_silent:
            return StatusSpan(f"not answering{unsaved}", theme.status_failed)
        if standing.connection is ConnectionStatus.LIVE:
            return StatusSpan(str(standing.connection), theme.status_done)
        words = str(standing.connection)
        if standing.reason is not None:
            reason = _in_one_line(standing.reason)
            return StatusSpan(cut_to(f"{words}: {reason}", width // 2), theme.status_failed)
        if standing.connection is ConnectionStatus.OFFLINE:
            words += unsaved
        if standing.connection in (ConnectionStatus.CONNECTING, ConnectionStatus.CATCHING_UP):
            return StatusSpan(words, theme.dim)
        return StatusSpan(words if width >= 60 else str(standing.connection), theme.status_failed)


def _in_one_line(reason: str) -> str:
    return sanitize_for_display(format_absolute(" ".join(reason.split())))
