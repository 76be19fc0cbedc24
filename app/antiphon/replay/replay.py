"""A replay as it was read: its steps, when each is shown, and its state at some of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from antiphon_kernel.document.header import ENUMS, known_value, stored_header
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.errors import invalid_params
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.types.replay import (
    ChangedHeader,
    CreatedBlock,
    ReplayChange,
    ReplayEdit,
    ReplayEnd,
    ReplayHeader,
    ReplayLine,
    ReplayPresence,
    ReplayPrincipal,
    SplicedText,
    read_replay_line,
)

STEPS_BETWEEN_STATES: Final = 256
"""Steps after which the state is kept: a seek makes fewer edits than they have."""

_TITLE: Final = 40
"""Characters of a message in the title of its mark."""


class ReplayBlock(NamedTuple):
    """A block at one moment."""

    header: BlockHeader
    text: str


@dataclass(slots=True)
class ReplayState:
    """Everything at one moment."""

    blocks: dict[str, ReplayBlock] = field(default_factory=dict)
    present: dict[str, ReplayPresence] = field(default_factory=dict)
    """Who is where, by session; of those of whom that is not recorded, where they last wrote."""

    def copy(self) -> ReplayState:
        return ReplayState(dict(self.blocks), dict(self.present))


class ReplayStep(NamedTuple):
    """A change or a movement."""

    at_ms: int
    """When it is shown, with the pauses shortened."""
    line: ReplayChange | ReplayPresence


class ReplayMark(NamedTuple):
    """A moment that one may look for."""

    at_ms: int
    kind: str
    """`message`, `call`, `come` or `leave`."""
    title: str
    by: str
    """Id of the principal."""


class Replay:
    """Steps of one context from its first change to its last."""

    def __init__(self, header: ReplayHeader) -> None:
        self.header = header
        self.people: dict[str, ReplayPrincipal] = {}
        """Everybody in it, by id."""
        self.steps: list[ReplayStep] = []
        self.marks: list[ReplayMark] = []
        self.states: list[ReplayState] = []
        """One before every `STEPS_BETWEEN_STATES` steps."""
        self.is_whole = False
        """The last line is there: nothing was broken off."""

    @property
    def label(self) -> str:
        return self.header.label

    @property
    def duration_ms(self) -> int:
        return self.steps[-1].at_ms if self.steps else 0

    @classmethod
    def read(cls, lines: Iterable[bytes], *, max_pause: float | None) -> Replay:
        """Read the lines of a replay.

        Args:
            max_pause: seconds to which longer pauses are shortened; None leaves them.

        Raises:
            AntiphonError: invalid_params, naming the line, or if there is none.
        """
        raise NotImplementedError
