"""The contexts of a kernel: which there are, what they are called, how one comes to be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace

from antiphon_kernel.access import WriteGuard
from antiphon_kernel.contexts.context import Context
from antiphon_kernel.document.genesis import genesis_update
from antiphon_kernel.storage import Commit, ContextRow, ForkOrigin, Journal
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.constants import DEFAULT_CONTEXT
from antiphon_kernel.types.enums import ContextKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.ids import NAME_LENGTH, ContextId, IdSource, is_name, resolve
from antiphon_kernel.types.quoting import join_names, quote, truncate
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.signal import Signal


@dataclass(frozen=True, slots=True)
class InitialContent:
    """Initial content of a context."""

    commits: Sequence[Commit] = ()
    """The transactions that come with the founding one, from seq 2 on."""
    origin: ForkOrigin | None = None
    """The source of a fork; None of a context that is none."""


First = Callable[[ContextRow], Awaitable[InitialContent]]
"""Makes the beginning of a context."""


class ContextRegistry:
    """Every context as the journal has it; whether one is open is not known here.

    Reading and writing the journal raise AntiphonError storage_failed.
    """

    def __init__(self, journal: Journal, clock: Clock, ids: IdSource, guard: WriteGuard) -> None:
        self.journal = journal
        self.clock = clock
        self.ids = ids
        self.guard = guard
        self.stated = Signal[Sequence[ContextRow]]()
        """Those of the contexts that this kernel has made or changed which are new, on disk."""
        self.is_shared = False
        """Whether other kernels make and rename contexts too."""
        self._rows: dict[ContextId, ContextRow] = {}
        self._labels: dict[str, ContextId] = {}
        self._numbers: dict[int, ContextRow] = {}
        """Every context by its number, also those that are being made."""
        self._reserved: set[str] = set()
        self._changes = 0
        """Counts what has become known here, which may be newer than what is being read."""

    async def load(self) -> None:
        """Read what is on disk."""
        while True:
            begun = self._changes
            rows = await self.journal.contexts()
            if begun == self._changes:
                break
        for row in rows:
            self._store(row)

    def _store(self, row: ContextRow) -> None:
        before = self._rows.get(row.id)
        if before is not None and self._labels.get(before.label) == row.id:
            del self._labels[before.label]
        self._rows[row.id] = self._numbers[row.number] = row
        self._labels[row.label] = row.id

    def rows(self) -> list[ContextRow]:
        """Every context, oldest first, archived ones too."""
        return list(self._rows.values())

    def __getitem__(self, context: ContextId) -> ContextRow:
        return self._rows[context]

    def find(self, reference: str) -> ContextId:
        """A context by label, id or prefix of an id; raises context_not_found or ambiguous_id."""
        row = self._rows.get(ContextId(reference))
        if row is not None:
            return row.id
        missing = ErrorCode.CONTEXT_NOT_FOUND
        return ContextId(resolve(reference, self._labels, what="context", missing=missing))

    async def look_up(self, reference: str) -> ContextId:
        """Return what `find` does; what others have made meanwhile is found too."""
        try:
            return self.find(reference)
        except AntiphonError as error:
            if not self.is_shared or error.code is not ErrorCode.CONTEXT_NOT_FOUND:
                raise
        await self.load()
        return self.find(reference)

    def of_number(self, number: int) -> ContextRow:
        """Return the context that this number stands for in rows of the journal."""
        return self._numbers[number]

    def has_number(self, number: int) -> bool:
        """Return whether the context of this number is known here; see `load`."""
        return number in self._numbers

    def root(self, number: int) -> int:
        """Return the number of the context that a fork goes back to; of another one its own."""
        while (origin := self._numbers[number].origin) is not None:
            number = origin.source
        return number

    def free_label(self, stem: str, besides: Collection[str] = ()) -> str:
        """A label that nobody has, nor `besides`: the stem itself, or with a number behind it."""
        taken = self._labels.keys() | self._reserved | set(besides)
        label, number = stem[:NAME_LENGTH], 1
        while label in taken:
            number += 1
            behind = f"-{number}"
            label = stem[: NAME_LENGTH - len(behind)] + behind
        return label

    async def create(
        self,
        label: str,
        founder: Actor,
        first: First | None = None,
        *,
        asker: Actor,
        kind: ContextKind = ContextKind.CONVERSATION,
    ) -> ContextRow:
        """A new context; empty, unless something is to be in it from the start.

        Args:
            first: the transactions it makes are there together with the founding one, or none is.
            asker: whoever wants it, and must have the right to write when it is committed.

        Raises:
            AntiphonError: invalid_params if the label is taken or cannot be one; permission_denied.
        """

        async def alone(rows: Sequence[ContextRow]) -> list[InitialContent]:
            return [await first(rows[0]) if first is not None else InitialContent()]

        (row,) = await self.create_all((label,), founder, alone, asker=asker, kind=kind)
        return row

    async def create_all(
        self,
        labels: Sequence[str],
        founder: Actor,
        first: Callable[[Sequence[ContextRow]], Awaitable[Sequence[InitialContent]]],
        *,
        asker: Actor,
        kind: ContextKind = ContextKind.CONVERSATION,
    ) -> list[ContextRow]:
        """New contexts: all of them are there at once, or none is.

        Args:
            first: makes the beginning of each; a fork stands behind its source.
            asker: as `create` takes it, which raises the same.
        """
        reserved: list[str] = []
        try:
            for label in labels:
                self._reserve(label)
                reserved.append(label)
            await self.journal.reserve_contexts(len(labels))
            time = self.clock.now_ms()
            rows = [
                self.journal.add_context(
                    ContextId(self.ids.uuid7()), label, self.ids.uuid7(), time, kind
                )
                for label in labels
            ]
            beginnings = await first(rows)
            self.guard.check_writer(asker)
            commits: list[Commit] = []
            for at, (row, beginning) in enumerate(zip(rows, beginnings, strict=True)):
                row = replace(row, origin=beginning.origin, creator=asker.principal.id)
                rows[at] = self._numbers[row.number] = row
                update = genesis_update(row.id, row.epoch, row.label)
                commits.append(Commit(row, 1, time, founder, "found", (), update))
                commits += beginning.commits
        except BaseException:
            self._reserved.difference_update(reserved)
            raise
        founded = self.journal.commit(*commits)
        await self._wait_until_stated(rows, founded, reserved)
        return rows

    async def rename(self, actor: Actor, context: Context, label: str) -> int:
        """Give a context another label, as `create` does; the version of it that has that."""
        row = context.row
        if label == row.label:
            return await _unchanged(context)
        _reject_default(row, "keeps its label")
        self._reserve(label)
        try:
            written = context.update_metadata(actor, "rename", replace(row, label=label))
        except BaseException:
            self._reserved.remove(label)
            raise
        await self._wait_until_stated([context.row], written.on_disk, [label])
        return written.seq

    async def archive(self, actor: Actor, context: Context, archived: bool) -> int:
        """Put a context out of the way, or back; the version of the context that is so.

        Raises AntiphonError invalid_params for the default context.
        """
        row = context.row
        if archived == (row.archived is not None):
            return await _unchanged(context)
        _reject_default(row, "is not archived")
        time = self.clock.now_ms() if archived else None
        operation = "archive" if archived else "unarchive"
        written = context.update_metadata(actor, operation, replace(row, archived=time))
        await self._wait_until_stated([context.row], written.on_disk)
        return written.seq

    def _reserve(self, label: str) -> None:
        """Nobody else gets this label; raises AntiphonError invalid_params."""
        taken = [*self._labels, *self._reserved]
        if not is_name(label):
            wrong = (
                f"{quote(label)} cannot be a label: at most {NAME_LENGTH} small letters, digits, -"
                " and _ are allowed, and a letter or digit at the beginning."
            )
            raise invalid_params(wrong, found=truncate(label), limit=NAME_LENGTH)
        if label in taken:
            wrong = (
                f"There is a context {label} already: give another label than these"
                f" ({join_names(taken)})."
            )
            raise invalid_params(wrong, found=label)
        self._reserved.add(label)

    async def _wait_until_stated(
        self,
        rows: Sequence[ContextRow],
        on_disk: asyncio.Future[None],
        labels: Sequence[str] = (),
    ) -> None:
        """Wait until what is new of contexts is on disk, and let go of the labels.

        Until then their old labels, if they have any, are not free.
        """

        def stated(done: asyncio.Future[None]) -> None:
            self._reserved.difference_update(labels)
            if done.exception() is None:
                self._changes += 1
                founded = [row for row in rows if row.id not in self._rows]
                for row in rows:
                    self._store(row)
                self.stated.notify(founded)

        on_disk.add_done_callback(stated)
        try:
            await asyncio.shield(on_disk)
        except AntiphonError:
            # A commit that failed may have reached the disk: the label is taken then.
            await self.load()
            raise


def _reject_default(row: ContextRow, what: str) -> None:
    if row.label == DEFAULT_CONTEXT:
        raise invalid_params(
            f"The context {DEFAULT_CONTEXT} {what}, since calls that name no context mean it:"
            " fork it, or create another.",
            found=row.label,
        )


async def _unchanged(context: Context) -> int:
    seq = context.seq
    await context.wait_persisted()
    return seq
