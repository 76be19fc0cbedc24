"""The check that begins every commit of kernels on one database: a former owner's fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from antiphon_kernel.access.access_control import WriteGuard
from antiphon_kernel.access.invitations import Members
from antiphon_kernel.cluster import Ownership
from antiphon_kernel.storage import Commit, FenceError
from antiphon_kernel.storage.database import Statement
from antiphon_kernel.types.errors import AntiphonError, context_has_moved


@dataclass(frozen=True, slots=True)
class CommitFence:
    """The rows that a group of commits of this kernel depends on, as they are known here."""

    ownership: Ownership
    root: Callable[[int], int]
    """Returns the number of the context that one goes back to, by its own number."""
    guard: WriteGuard
    members: Members

    def statement(self, group: Sequence[Commit], *others: int) -> Statement:
        """Return the statement that refuses the transaction if it may not be."""
        founded = [one.context.number for one in group if one.seq == 1 and not one.context.origin]
        numbers = {*others, *(one.context.number for one in group)}
        roots = list({self.root(one) for one in numbers}.difference(founded))
        writers = {one.actor.principal.id for one in group}
        known = {one: self.members.epoch_of(one) for one in writers}
        principals = {one: epoch for one, epoch in known.items() if epoch is not None}
        kernel, epochs = self.ownership.kernel, [self.ownership.epoch(one) for one in roots]
        values = kernel, founded, roots, epochs, [*principals], [*principals.values()]
        return "SELECT check_commit(?, ?, ?, ?, ?, ?)", [values]

    async def refusals(
        self, error: FenceError, group: Iterable[Commit]
    ) -> list[AntiphonError | None]:
        """Read again what is out of date; why each commit fails that is not to be tried again."""
        if error.principals:
            with suppress(AntiphonError):  # then the next attempt fails for the same reason
                await self.members.read_again()
        return [self._refusal(error, one) for one in group]

    def _refusal(self, error: FenceError, commit: Commit) -> AntiphonError | None:
        root = self.root(commit.context.number)
        if root in error.contexts or not (error.contexts or error.principals):
            # Not now: the others of the group are being written.
            asyncio.get_running_loop().call_soon(self.ownership.lose, root)
            return context_has_moved()
        if commit.actor.principal.id in error.principals:
            return self.guard.refusal(commit.actor.principal, commit.actor.session)
        return None
