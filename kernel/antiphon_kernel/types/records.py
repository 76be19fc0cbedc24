"""Values that travel between the layers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from antiphon_kernel.types.enums import BlockKind, CallPermission, PrincipalKind, Role, Status
from antiphon_kernel.types.ids import PrincipalId, SessionId
from antiphon_kernel.types.roles import AccessRole, Permission

COLOUR_SLOTS = 12
"""Principals get a colour slot 0..11 per context; a theme says what the slots look like."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Anyone who acts: a person, one model, the shell, the system."""

    id: PrincipalId
    username: str
    kind: PrincipalKind
    display_name: str | None = field(default=None, compare=False)
    """How it wants to be called; the username if None."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Actor:
    """A principal acting through one session: what every call and every commit is made as."""

    principal: Principal
    session: SessionId
    role: AccessRole
    """The principal's when the session began; when the role changes, its sessions end, but for one
    over SSH, as which nothing is called."""
    via: str
    """How the session came in: `unix`, `tcp`, `turn`, …"""
    since: int
    """When the session began, in milliseconds since the epoch."""
    credential: int | None = None
    """Number of the credential that let it in; None for the owner and for the kernel's own."""
    needs: Permission | None = None
    """Of work without a connection: the right without which the session ends."""
    lasts: bool = True
    """False for a session of a single call."""
    within: SessionId | None = None
    """The session over SSH whose token let it in; it ends with that."""

    def __hash__(self) -> int:
        """Return a hash that is cheap: it is asked for with every write."""
        return hash(self.session)


@dataclass(frozen=True, slots=True)
class Member:
    """A principal as a context's document knows it."""

    principal: str
    username: str
    kind: PrincipalKind | str
    """`human`, `model`, or another kind of principal."""
    colour: int
    """Slot of their colour, from 0 to 11."""

    def as_json(self) -> str:
        fields = {"name": self.username, "kind": str(self.kind), "colour": self.colour}
        return json.dumps(fields, ensure_ascii=False)

    @classmethod
    def parse(cls, principal: str, stored: str) -> Member | None:
        """Read what `as_json` wrote; None if it is something else."""
        try:
            fields = json.loads(stored)
            return cls(principal, str(fields["name"]), fields["kind"], int(fields["colour"]))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class Stamp:
    """One change: who made it, when, and which version of the block it made."""

    principal: str
    version: int
    time: int
    """Milliseconds since the epoch."""
    block: str | None = None
    """The block that has this version, if it is the original of a copy."""


@dataclass(frozen=True, slots=True)
class Run:
    """So many code points in a row that one change wrote."""

    length: int
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class TextSplice:
    """At code point `offset`, `deleted` code points went away and `inserted` came."""

    offset: int
    deleted: int
    inserted: str


_OF_PROGRAMS: Final = (BlockKind.TOOL_CALL, BlockKind.DRIFT)


class BlockHeader(NamedTuple):
    """Everything of a block but its content. Absent optional fields are None.

    A context has one for each of its blocks: a frozen dataclass would take six times as long to
    make.

    `kind`, `role` and `status` are plain strings when the stored value is unknown to this version.
    How a field is stored, exported and shown follows from its type and its docstring here.
    """

    id: str
    kind: BlockKind | str
    role: Role | str
    status: Status | str
    order: str
    """Blocks sort by it, then by id."""
    created: str
    author: str
    """Id of the principal that created it."""
    parent: str | None = None
    """The block it answers."""
    tool_kind: str | None = None
    """The engine that runs the tool call: `shell`, `mcp`, `builtin`."""
    drift_kind: str | None = None
    """How it came over from another context."""
    tool_name: str | None = None
    """The tool that is called."""
    tool_call_id: str | None = None
    """The id that ties a result to its call."""
    input: str | None = None
    """Input of the tool call, a JSON document."""
    exit_code: int | None = None
    duration_ms: int | None = None
    """How long the tool ran."""
    is_error: bool = False
    truncated: bool = False
    """Whether there was more output than the block holds."""
    source_context: str | None = None
    """Id of the context that it came from."""
    source_block: str | None = None
    """Id of the block that it was copied or drawn from."""
    path: str | None = None
    """The file it is about."""
    language: str | None = None
    """The language its text is written in."""
    media_type: str | None = None
    """Type of the file that was attached with it: `image/png`."""
    blob: str | None = None
    """SHA-256 of the bytes of that file."""
    blob_bytes: int | None = None
    """How many they are."""
    collapsed: bool = False
    """Whether it is shown folded."""
    excluded: bool = False
    """Whether models are not given it."""
    ephemeral: bool = False
    """Whether it is not part of the conversation's record."""
    edited_after_done: bool = False
    """Whether its text has changed since it was done."""
    stop_reason: str | None = None
    stopped_by: str | None = None
    permission: str | None = None
    """Of a model's call that people were asked about: `asked`, `once`, `always`, `denied`,
    `withdrawn` or `revoked`."""
    runs_for: str | None = None
    """Username of whoever's rights that call has."""
    decided_by: str | None = None
    """Username of whoever decided about that call, or revoked it."""
    metadata: Mapping[str, Any] = {}
    """Whatever else its creator has said of it."""

    @property
    def is_shell(self) -> bool:
        """A shell command or the output of one."""
        return self.kind in (BlockKind.TOOL_CALL, BlockKind.TOOL_RESULT) and (
            self.tool_kind == "shell"
        )

    @property
    def is_draft(self) -> bool:
        """A person's text that has not been submitted yet."""
        return (
            self.kind == BlockKind.TEXT
            and self.role == Role.USER
            and self.status in (Status.PENDING, Status.RUNNING)
        )

    @property
    def is_undecided(self) -> bool:
        """A call that waits for a decision; an agent may have said already that it runs."""
        is_open = self.status in (Status.PENDING, Status.RUNNING)
        return self.permission == CallPermission.ASKED and is_open

    @property
    def is_written_by_program(self) -> bool:
        """A model's or a tool's block, a call or a drift: running only while somebody writes it."""
        return self.role in (Role.MODEL, Role.TOOL) or self.kind in _OF_PROGRAMS
