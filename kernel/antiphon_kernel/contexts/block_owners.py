"""Sessions that keep running blocks alive, and interruption of the blocks when one ends."""

from __future__ import annotations

from collections.abc import Callable

from antiphon_kernel.access import Members
from antiphon_kernel.contexts.commit_types import Applied
from antiphon_kernel.contexts.context import Context
from antiphon_kernel.types.constants import INTERRUPTED
from antiphon_kernel.types.enums import PrincipalKind, Role, Status
from antiphon_kernel.types.ids import ContextId, SessionId
from antiphon_kernel.types.records import Actor


class BlockOwners:
    """The writers of the blocks of models and tools, in every open context."""

    def __init__(self, members: Members, system: Actor) -> None:
        self.system = system
        """Who interrupts."""
        self._members = members
        self._sessions: dict[str, SessionId] = {}

    def writes(self, actor: Actor, block: str) -> None:
        """From now on this session keeps the block alive."""
        self._sessions[block] = actor.session

    def watch(self, context: Context) -> None:
        """A context has been opened: what nobody writes in any more is interrupted."""
        context.commits.on_applied(lambda applied: self._keep_alive(context, applied))
        if context.is_writable:
            self.interrupt(context, lambda block: block not in self._sessions)

    def end_session(self, session: SessionId) -> set[str]:
        """The blocks that nobody keeps alive now that the session has ended."""
        left = {block for block, writer in self._sessions.items() if writer == session}
        for block in left:
            del self._sessions[block]
        return left

    def forget(self, context: ContextId) -> None:
        """Nobody keeps anything in a context alive any more."""
        for block in [block for block in self._sessions if block.startswith(context)]:
            del self._sessions[block]

    def interrupt(self, context: Context, left: Callable[[str], bool]) -> bool:
        """End every open block of a model or tool for which `left` says so; whether there was any.

        The change is applied, but not yet on disk.
        """
        document = context.document
        models = {one.id for one in self._members if one.kind is PrincipalKind.MODEL}
        due = []
        for block in document.block_ids():
            header = document.header(block)
            if header.role not in (Role.MODEL, Role.TOOL):
                continue
            # A block that a person's script has made for later may wait; a model's may not.
            waits = header.status == Status.PENDING and header.author in models
            if (header.status == Status.RUNNING or waits) and left(block):
                due.append(block)
                context.appends.flush(block)
                self._sessions.pop(block, None)
        if not due:
            return False

        def mark() -> None:
            for block in due:
                document.set_fields(block, status=Status.ERROR, stop_reason=INTERRUPTED)

        context.write(self.system, "interrupt", mark, blocks=due, undo=None)
        return True

    def _keep_alive(self, context: Context, applied: Applied) -> None:
        """Whoever makes a block of a model or tool run, by writing into it, is its owner."""
        for change in applied.changes:
            for header in change.headers:
                if "status" not in header.fields or header.block in self._sessions:
                    continue
                now = context.document.header(header.block)
                if now.status == Status.RUNNING and now.role in (Role.MODEL, Role.TOOL):
                    self._sessions[header.block] = applied.actor.session
