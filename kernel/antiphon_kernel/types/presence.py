"""Presence in a context: principals, cursors and activities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from antiphon_kernel.types.enums import Activity, PrincipalKind
from antiphon_kernel.types.roles import AccessRole

_MAX_ID: Final = 256
"""Characters of a block's id at most: no id that the kernel makes is as long."""

CHECKED_KEYS: Final = ("view", "pointer", "gathers")
"""Parts of a state that are passed on only as far as they can be read."""


@dataclass(frozen=True, slots=True)
class TextPlace:
    """A range of the text of a block, in code points."""

    block: str
    start: int
    end: int

    @classmethod
    def parse(cls, value: object) -> TextPlace | None:
        """Read what somebody has sent; None if it is not a place."""
        if not isinstance(value, Mapping):
            return None
        block, start, end = value.get("block"), _whole(value.get("start")), _whole(value.get("end"))
        if not isinstance(block, str) or len(block) > _MAX_ID or start is None or end is None:
            return None
        return cls(block, start, end) if start <= end else None


@dataclass(frozen=True, slots=True)
class PresenceState:
    """One session's presence in one context, as awareness carries it.

    `cursor` and `anchor` (the other end of a selection) are code point offsets into the text of
    `block`. A model that streams has its cursor at its append point.
    """

    principal: str
    username: str
    kind: PrincipalKind | str
    colour: int
    session: str
    block: str | None = None
    cursor: int | None = None
    anchor: int | None = None
    activity: Activity | str = Activity.IDLE
    role: AccessRole | str | None = None
    """The principal's role; None if a kernel of an older version has not said."""
    view: TextPlace | None = None
    """The text in the first row that they see; None while they see the end, or if not said."""
    pointer: TextPlace | None = None
    """The text that they point at, for a moment."""
    gathers: bool = False
    """They ask the others to come to where they are, for a moment."""

    def as_json(self) -> dict[str, Any]:
        """The awareness state; absent optional fields are left out."""
        state = {"name": self.username, **asdict(self), "gathers": self.gathers or None}
        del state["username"]
        return {key: value for key, value in state.items() if value is not None}

    @classmethod
    def parse(cls, state: Mapping[str, Any]) -> PresenceState | None:
        """Read an awareness state that the kernel sent; None if it is not one of ours."""
        principal, name = state.get("principal"), state.get("name")
        if not isinstance(principal, str) or not isinstance(name, str):
            return None
        block, role = state.get("block"), state.get("role")
        return cls(
            principal=principal,
            username=name,
            kind=str(state.get("kind", PrincipalKind.HUMAN)),
            colour=_whole(state.get("colour")) or 0,
            session=str(state.get("session", "")),
            role=role if isinstance(role, str) else None,
            block=block if isinstance(block, str) else None,
            cursor=_whole(state.get("cursor")),
            anchor=_whole(state.get("anchor")),
            activity=str(state.get("activity", Activity.IDLE)),
            view=TextPlace.parse(state.get("view")),
            pointer=TextPlace.parse(state.get("pointer")),
            gathers=state.get("gathers") is True,
        )


def _whole(value: object) -> int | None:
    """Awareness JSON may come back with 3.0 for 3."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value >= 0 and value == int(value) else None
