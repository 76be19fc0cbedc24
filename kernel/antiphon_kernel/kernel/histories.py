"""The histories of one context's texts, read from the journal when first asked for.

While a history is open it follows every commit, so that it is exact at once; those that nobody has
asked for lately are let go.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from antiphon_kernel.document.document import Document
from antiphon_kernel.document.history.text_history import Change, Stamp, TextHistory, Turn
from antiphon_kernel.journal.journal import Journal
from antiphon_kernel.journal.rows import ContextRow, StoredOp
from antiphon_kernel.types.records import TextAddress
from antiphon_kernel.wire.update import decode_update

_KEPT: Final = 32
"""Histories that stay open when nobody asks for them."""

_FOLLOWED_A_TURN: Final = 200
"""Transactions read before others get their turn."""


class Histories:
    """The open histories of one context. Belongs to one event loop."""

    def __init__(
        self,
        journal: Journal,
        context: ContextRow,
        document: Document,
        *,
        seq: Callable[[], int],
        number_of: Callable[[str], int],
        settled: Callable[[], Awaitable[None]],
    ) -> None:
        """
        Args:
            seq: the number of the last transaction that has been applied.
            number_of: the journal's number of a block.
            settled: waits until everything that has been applied is on disk.
        """
        self._journal = journal
        self._context = context
        self._document = document
        self._seq = seq
        self._number_of = number_of
        self._settled = settled
        self._open: OrderedDict[TextAddress, TextHistory] = OrderedDict()
        self._collecting: list[list[StoredOp]] = []

    def opened(self, addresses: Iterable[TextAddress]) -> list[TextHistory] | None:
        """Histories that are up to date with the document; None if one is not open."""
        found = [self._open.get(address) for address in addresses]
        for address in addresses:
            if address in self._open:
                self._open.move_to_end(address)
        histories = [one for one in found if one is not None]
        return histories if len(histories) == len(found) else None

    async def open(self, addresses: Sequence[TextAddress]) -> list[TextHistory]:
        """Histories that are up to date with the document until the next await.

        Raises:
            AntiphonError: storage_failed.
        """
        while True:
            missing = [address for address in addresses if address not in self._open]
            if not missing:
                break
            for address in missing:
                await self._read(address)
        histories = self.opened(addresses)
        assert histories is not None
        while len(self._open) > max(_KEPT, len(set(addresses))):
            self._open.popitem(last=False)
        return histories

    def follow(self, op: Callable[[], StoredOp]) -> None:
        """A transaction has been applied to the document.

        Args:
            op: makes it, if anybody wants to know.
        """
        if not self._open and not self._collecting:
            return
        new = op()
        for collected in self._collecting:
            collected.append(new)
        for address, history in list(self._open.items()):
            self._follow(history, [new])
            if history.length != self._document.length(address.block):
                del self._open[address]  # an update brought more than it was said to touch

    async def _read(self, address: TextAddress) -> None:
        history = await self._replay(address, self._number_of(address.block))
        if history.text() != self._document.text(address.block):
            # What nobody ever saw (written and removed offline) is in no list of touched blocks,
            # but later text may stand beside it.
            history = await self._replay(address, None)
        if history.text() != self._document.text(address.block):
            raise RuntimeError(f"the journal and the document differ in the text {address}")
        self._open[address] = history

    async def _replay(self, address: TextAddress, block: int | None) -> TextHistory:
        """Read what is on disk, then what has been committed meanwhile."""
        history = TextHistory(address)
        begun, collected = self._seq(), list[StoredOp]()
        self._collecting.append(collected)
        try:
            await self._settled()
            ops = await self._journal.ops_upto(self._context, begun, block)
            for at in range(0, len(ops), _FOLLOWED_A_TURN):
                self._follow(history, ops[at : at + _FOLLOWED_A_TURN])
                await asyncio.sleep(0)
            self._follow(history, collected)
        finally:
            self._collecting.remove(collected)
        return history

    def _follow(self, history: TextHistory, ops: Iterable[StoredOp]) -> None:
        number = self._number_of(history.address.block)
        for op in ops:
            version = op.versions.get(number)
            if version is None and op.operation != "sync":
                continue
            turn = Turn(op.operation) if op.unit and op.operation in tuple(Turn) else None
            history.follow(
                Change(
                    decode_update(op.update),
                    Stamp(op.principal, version or history.version, op.time),
                    op.unit,
                    turn,
                    op.revivals,
                )
            )
