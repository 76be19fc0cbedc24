"""Sessions and leases that keep running blocks alive, their presence, and their interruption."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

from antiphon_kernel.access import VIA_MCP, VIA_TURN, Members, ToolPermissions
from antiphon_kernel.contexts.commit_types import Applied
from antiphon_kernel.contexts.context import Context
from antiphon_kernel.contexts.writer_presence import EditorPresence, WriterPresence
from antiphon_kernel.types.constants import INTERRUPTED
from antiphon_kernel.types.enums import (
    ANSWERING_KINDS,
    Activity,
    CallPermission,
    ContextKind,
    Status,
)
from antiphon_kernel.types.ids import ContextId, SessionId
from antiphon_kernel.types.records import Actor

_SHOWN_OTHERWISE: Final = (VIA_TURN, "kernel")
"""How those come in whose presence is another's matter."""


def _now() -> float:
    return asyncio.get_running_loop().time()


class BlockOwners:
    """The writers of the blocks of models and tools, in every open context."""

    def __init__(
        self,
        members: Members,
        permissions: ToolPermissions,
        lease_seconds: float,
        new_client: Callable[[], int],
    ) -> None:
        """
        Args:
            permissions: a call that waits for a person's decision is kept.
            lease_seconds: for how long a session of a single call keeps a block alive.
            new_client: a new awareness client id, for the presence of a writer.
        """
        self.system: Actor
        """The actor that interrupts."""
        self._members = members
        self._permissions = permissions
        self._sessions: dict[str, SessionId] = {}
        self._lease_seconds = lease_seconds
        self._presences: dict[str, WriterPresence] = {}
        """Of those who write running blocks from outside; a turn has a presence of its own."""
        self._editors: dict[tuple[ContextId, SessionId], EditorPresence] = {}
        """Of the turns that have edited a file, and of programs that have edited anything."""
        self._new_client = new_client
        self._leases: dict[str, float] = {}
        """When the lease of a block ends, by the clock of the event loop."""

    def writes(self, actor: Actor, block: str) -> None:
        """From now on this session keeps the block alive."""
        self._sessions[block] = actor.session
        self._leases.pop(block, None)

    def watch(self, context: Context) -> None:
        """A context has been opened: what nobody writes in any more is interrupted."""
        context.applied.listen(lambda applied: self._keep_alive(context, applied))
        if context.journal.is_writable:
            self.interrupt(context, self._is_left)

    def _is_left(self, block: str) -> bool:
        return block not in self._sessions and block not in self._leases

    def end_session(self, session: SessionId, *, leaves_leases: bool) -> set[str]:
        """Return the blocks that nobody keeps alive now that the session has ended.

        If it `leaves_leases`, its blocks stay open for a while, because the next call that writes
        in them comes through a session of its own.
        """
        for key in [one for one in self._editors if session == one[1]]:
            self._editors.pop(key).leave()
        left = {block for block, writer in self._sessions.items() if writer == session}
        for block in left:
            del self._sessions[block]
        if not leaves_leases:
            return left
        self._leases |= dict.fromkeys(left, self._lease_end())
        return set()

    def lease_seconds(self, block: str) -> float | None:
        """Return for how long the lease of a block still lasts; None if it has none."""
        end = self._leases.get(block)
        return max(0.0, end - _now()) if end is not None else None

    @property
    def next_lease_end(self) -> float | None:
        """When the next lease ends, by the clock of the event loop; None if there is none."""
        return min(self._leases.values(), default=None)

    def end_leases(self) -> set[str]:
        """Return the blocks whose leases have ended."""
        over = {block for block, end in self._leases.items() if end <= _now()}
        for block in over:
            del self._leases[block]
        return over

    def _lease_end(self) -> float:
        return _now() + self._lease_seconds

    def forget(self, context: ContextId) -> None:
        """Nobody keeps anything in a context alive any more."""
        for kept in (self._sessions, self._leases):
            for block in [block for block in kept if block.startswith(context)]:
                del kept[block]
        for block in [block for block in self._presences if block.startswith(context)]:
            self._presences.pop(block).leave()
        for key in [one for one in self._editors if context == one[0]]:
            self._editors.pop(key).leave()

    def edits(self, session: SessionId | None, context: ContextId) -> bool:
        """Return whether the session of a turn is shown in a file."""
        return (context, session) in self._editors

    def stop(self, context: Context, username: str | None, by: str) -> set[str]:
        """Interrupt what programs write from outside; return whose blocks there were.

        `username` says whose blocks, anybody's if None; `by` is that of whoever wants it.
        """
        due = {
            block: one.username
            for block, one in self._presences.items()
            if block in context.document and username in (None, one.username)
        }
        self.interrupt(context, due.__contains__, stopped_by=by)
        return set(due.values())

    def interrupt(
        self, context: Context, left: Callable[[str], bool], *, stopped_by: str | None = None
    ) -> bool:
        """End every open block of a model or tool for which `left` says so; whether there was any.

        The change is applied, but not yet on disk.
        """
        fields = {} if stopped_by is None else {"stopped_by": stopped_by}
        document = context.document
        due = [block for block in self._kept_alive(context) if left(block)]
        for block in due:
            context.appends.flush(block)
            self._sessions.pop(block, None)
            self._leases.pop(block, None)
        if not due:
            return False

        def mark() -> None:
            for block in due:
                document.set_fields(block, status=Status.ERROR, stop_reason=INTERRUPTED, **fields)
                if document.header(block).permission == CallPermission.ASKED:
                    document.set_fields(block, permission=CallPermission.WITHDRAWN)

        context.write(self.system, "interrupt", mark, blocks=due, undo=None)
        return True

    def has_writers(self, context: Context) -> bool:
        """Return whether a block of the context is being written."""
        return any(True for _ in self._kept_alive(context))

    def _kept_alive(self, context: Context) -> Iterator[str]:
        """Yield the open blocks of models and tools that end when nobody keeps them alive."""
        document = context.document
        models = {one.id for one in self._members if one.kind in ANSWERING_KINDS}
        for block in document.open_blocks():
            header = document.header(block)
            if not header.is_written_by_program or block in self._permissions.undecided:
                continue
            # A block that a person's script has made for later may wait; a model's may not.
            waits = header.status == Status.PENDING and header.author in models
            if header.status == Status.RUNNING or waits:
                yield block

    def _keep_alive(self, context: Context, applied: Applied) -> None:
        """Make whoever starts a program's block, by writing into it, its owner.

        A write into a block with a lease renews that.
        """
        self._show_editor(context, applied)
        for block in applied.versions.keys() & self._leases.keys():
            status = context.document.header(block).status
            if status in (Status.DONE, Status.ERROR):
                del self._leases[block]
            else:
                self._leases[block] = self._lease_end()
        for change in applied.changes:
            for block in change.added:
                self._show_writer(context, applied.actor, block)
            for header in change.headers:
                if "status" in header.fields:
                    self._show_writer(context, applied.actor, header.block)
                if "status" not in header.fields or not self._is_left(header.block):
                    continue
                now = context.document.header(header.block)
                if now.status == Status.RUNNING and now.is_written_by_program:
                    self._sessions[header.block] = applied.actor.session

    def _show_writer(self, context: Context, actor: Actor, block: str) -> None:
        """Let whoever writes a running block from outside be present in it until it ends."""
        header = context.document.header(block)
        runs = header.status == Status.RUNNING and header.is_written_by_program
        if not runs and block in self._presences:
            self._presences.pop(block).leave()
        elif runs and block not in self._presences and actor.via not in _SHOWN_OTHERWISE:
            presence = WriterPresence(context, actor, self._new_client())
            presence.write_in(block)
            self._presences[block] = presence

    def _show_editor(self, context: Context, applied: Applied) -> None:
        """Let a turn that has changed a file be present there until it ends; so for a program."""
        actor, key = applied.actor, (context.id, applied.actor.session)
        is_turn = actor.via == VIA_TURN and context.row.kind is ContextKind.FILE
        if not is_turn and actor.via != VIA_MCP:
            return
        is_edit = any(change.texts or change.added for change in applied.changes)
        if is_edit and key not in self._editors:
            activity = Activity.STREAMING if is_turn else Activity.IDLE
            self._editors[key] = EditorPresence(context, actor, self._new_client(), activity)
            self._editors[key].follow(applied)
