"""Header line: the context, who is in it, and whether the kernel is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from rich.cells import cell_len

from antiphon.render.display import displayable_in_a_row
from antiphon.render.view import OWN_NAME
from antiphon.session import ConnectionStatus, SessionStatus
from antiphon.widgets.status.line import StatusLine, StatusSpan, cut_to, in_one_line
from antiphon_kernel.types.enums import ANSWERING_KINDS, Activity
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.roles import AccessRole

_DOING: Final[Mapping[str, str]] = {
    Activity.TYPING: "writing",
    Activity.STREAMING: "writing",
    Activity.WAITING: "queued",
}


@dataclass(frozen=True, slots=True)
class Participant:
    """One principal who is present, whatever the number of their sessions."""

    principal: str
    name: str
    colour: int
    is_me: bool
    is_model: bool
    doing: str
    """`writing`, `queued`, `asks`, `waits`, or nothing in particular."""
    streaming: bool
    block: str | None
    """The block their cursor is in."""
    role: str
    """Their role; empty if the kernel has not said."""


def participants(
    me: PresenceState | None,
    others: Iterable[PresenceState],
    waiting: Mapping[str, str] = MappingProxyType({}),
) -> Sequence[Participant]:
    """Return me, then models, then by name, one entry each.

    Args:
        waiting: labels of those who wait for a decision.
    """
    found: dict[str, Participant] = {}
    if me is not None:
        found[me.principal] = _person(me, is_me=True)
    for state in others:
        known = found.get(state.principal)
        does_more = known and (state.activity == Activity.STREAMING or not known.doing)
        if known is None or (not known.is_me and not known.streaming and does_more):
            found[state.principal] = _person(state, is_me=False)
    for one in found.keys() & waiting.keys():
        found[one] = replace(found[one], doing=waiting[one], streaming=False)
    return sorted(found.values(), key=lambda one: (not one.is_me, not one.is_model, one.name))


def _person(state: PresenceState, *, is_me: bool) -> Participant:
    return Participant(
        principal=state.principal,
        name=OWN_NAME if is_me else displayable_in_a_row(state.username),
        colour=state.colour,
        is_me=is_me,
        is_model=state.kind in ANSWERING_KINDS,
        doing="" if is_me else _DOING.get(str(state.activity), ""),
        streaming=state.activity == Activity.STREAMING,
        block=state.block,
        role=str(state.role or ""),
    )


WITH_PLACE: Final = 60
"""Columns from which on the kernel is named: who is here matters more."""


class HeaderLine(StatusLine):
    """` demo · default   ● you  ● aria writing  ○ guest        live`"""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place
        """Name of the kernel."""
        self.context = ""
        self._people: Sequence[Participant] = ()
        self._notes: Sequence[str] = ()
        """Notes on the file that is shown."""
        self._standing = SessionStatus(ConnectionStatus.CONNECTING)
        self._use = ""

    def show(
        self,
        context: str,
        people: Sequence[Participant],
        standing: SessionStatus,
        use: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        """Show this from now on.

        `use` is what the model here has used of tokens and money, `notes` are on a file.
        """
        self.context, self._people, self._standing = context, people, standing
        self._use, self._notes = use, notes
        # In which cell somebody is changes with each key, and is not shown here.
        shown = tuple(replace(one, block=one.block and "") for one in people)
        self.update_spans((self.place, context, shown, standing, use, tuple(notes)))

    def pieces(self, width: int) -> tuple[Sequence[StatusSpan], Sequence[StatusSpan]]:
        theme = self.cell_theme
        right = self._connection_pieces(width)
        place = [StatusSpan(self.place, theme.strong), StatusSpan(" · ", theme.dim)]
        notes = [StatusSpan(f"  {note}", theme.unread) for note in self._notes]
        left = [
            *(place if width >= WITH_PLACE else ()),
            StatusSpan(self.context, theme.text),
            *notes,
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
            reason = in_one_line(standing.reason)
            return StatusSpan(cut_to(f"{words}: {reason}", width // 2), theme.status_failed)
        if standing.connection is ConnectionStatus.OFFLINE:
            words += unsaved
        calm = ConnectionStatus.CONNECTING, ConnectionStatus.CATCHING_UP, ConnectionStatus.REPLAY
        if standing.connection in calm:
            return StatusSpan(words, theme.dim)
        return StatusSpan(words if width >= 60 else str(standing.connection), theme.status_failed)
