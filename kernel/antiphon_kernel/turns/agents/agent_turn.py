"""One turn of one agent."""

from __future__ import annotations

from dataclasses import dataclass, field

from antiphon_kernel.contexts import WriterPresence
from antiphon_kernel.turns.asker import Asker
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.turns.permission import PermissionDesk
from antiphon_kernel.turns.turn import TurnSettings


@dataclass(eq=False)
class AgentTurn:
    """One turn of one agent, while it is played."""

    writer: BlockWriter
    presence: WriterPresence
    prompt: str
    """The block that is answered."""
    asker: Asker
    """Principal with whose rights the agent works."""
    desk: PermissionDesk
    """Decides what it may do that it asks about."""
    settings: TurnSettings
    calls: dict[str, str] = field(default_factory=dict)
    """The block of each tool call, by the agent's id of it."""
    read: dict[str, str] = field(default_factory=dict)
    """Text of each file as the agent has last read or written it, by path; kept by its session."""
    permitted: set[tuple[str, str]] = field(default_factory=set)
    """Files and commands that calls name which a person has allowed in this turn: each with the
    tool of models that would do it."""
