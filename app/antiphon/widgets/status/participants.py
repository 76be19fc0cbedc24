"""People present, as the header line and the sidebar show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from antiphon.render.display import displayable_in_a_row
from antiphon.render.view import OWN_NAME
from antiphon_kernel.types.enums import Activity, PrincipalKind
from antiphon_kernel.types.presence import PresenceState

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
        if known is None or (not known.is_me and not known.streaming and _does_more(state, known)):
            found[state.principal] = _person(state, is_me=False)
    for one in found.keys() & waiting.keys():
        found[one] = replace(found[one], doing=waiting[one], streaming=False)
    return sorted(found.values(), key=lambda one: (not one.is_me, not one.is_model, one.name))


def _does_more(state: PresenceState, known: Participant) -> bool:
    return state.activity == Activity.STREAMING or not known.doing


def _person(state: PresenceState, *, is_me: bool) -> Participant:
    return Participant(
        principal=state.principal,
        name=OWN_NAME if is_me else displayable_in_a_row(state.username),
        colour=state.colour,
        is_me=is_me,
        is_model=state.kind == PrincipalKind.MODEL,
        doing="" if is_me else _DOING.get(str(state.activity), ""),
        streaming=state.activity == Activity.STREAMING,
        block=state.block,
        role=str(state.role or ""),
    )
