"""A conversation that becomes contexts, one for each branch of its tree, all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from antiphon_kernel.contexts.lineage.forking import (
    Fork,
    InitialChange,
    load,
    start_fork,
    start_with,
)
from antiphon_kernel.contexts.opening.context_registry import InitialContent
from antiphon_kernel.conversation.message_blocks import (
    ConversationEnd,
    MessageWriter,
    NewFile,
    NewMessage,
)
from antiphon_kernel.document.document import Document
from antiphon_kernel.limits import Limits
from antiphon_kernel.storage import Blob, ContextRow
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.ids import ContextId, moved_block
from antiphon_kernel.types.records import Actor

_IMPORT: Final = "import_messages"
"""Name of the transactions."""

_AT_ONCE: Final = 25
"""Messages of one transaction: they are written without a pause."""


@dataclass(slots=True)
class MessageChain:
    """Messages that follow each other, below a message of an earlier chain."""

    parent: tuple[int, int] | None = None
    """Number of that chain, and how many messages of its context they follow; None of the first."""
    messages: list[NewMessage] = field(default_factory=list)


@dataclass(slots=True)
class _NewBranch:
    """Context of one chain, and what it holds from its beginning on."""

    row: ContextRow
    content: InitialContent = field(default_factory=InitialContent)
    messages: list[NewMessage] = field(default_factory=list)
    blocks: list[list[str]] = field(default_factory=list)
    """Those of each message."""


@dataclass(frozen=True, slots=True)
class NewConversation:
    """A conversation that is to be written on behalf of somebody."""

    chains: Sequence[MessageChain]
    data: Mapping[str, bytes]
    """Bytes of images and documents that are stored with it, by hash."""
    files: Mapping[str, NewFile]
    """Every image and document that messages name, by hash."""

    async def start(
        self,
        rows: Sequence[ContextRow],
        actor: Actor,
        time: int,
        client_id: Callable[[], int],
        limits: Limits,
    ) -> list[InitialContent]:
        """Return the initial content of the context of each chain.

        Args:
            rows: one for each chain.
            client_id: gives the CRDT client id under which a context is written.
        """
        branches: list[_NewBranch] = []
        for row, chain in zip(rows, self.chains, strict=True):
            branch = _NewBranch(row)
            if chain.parent is None:
                changes = self._changes(branch, chain, ConversationEnd(), actor, time)
                content = await start_with(row, changes, actor, time, client_id())
            else:
                number, depth = chain.parent
                source, client = branches[number], client_id()
                end = _move(branch, source, depth)
                copied = tuple(block for each in source.blocks[:depth] for block in each)
                changes = self._changes(branch, chain, end, actor, time)
                document = _read(source, client)
                try:
                    at = source.content.commits[-1].seq
                    fork = Fork(source.row, at, document, copied, changes)
                    content = await start_fork(row, fork, actor, time, client, limits)
                finally:
                    document.close()
            branch.content = content
            branches.append(branch)
        contents = [branch.content for branch in branches]
        if self.data:
            blobs = tuple(Blob(digest, data) for digest, data in self.data.items())
            first, *rest = contents[0].commits
            contents[0] = replace(contents[0], commits=[first._replace(blobs=blobs), *rest])
        return contents

    def _changes(
        self,
        branch: _NewBranch,
        chain: MessageChain,
        end: ConversationEnd,
        actor: Actor,
        time: int,
    ) -> list[InitialChange]:
        def change(messages: Sequence[NewMessage]) -> InitialChange:
            def apply(document: Document, next_id: Callable[[], str]) -> None:
                author, created = actor.principal.id, iso_time(time)
                writer = MessageWriter(document, next_id, author, created, self.files)
                branch.blocks += writer.append(messages, end)
                branch.messages += messages

            return InitialChange(_IMPORT, apply)

        said = chain.messages
        return [change(said[at : at + _AT_ONCE]) for at in range(0, len(said), _AT_ONCE)]


def _move(branch: _NewBranch, source: _NewBranch, depth: int) -> ConversationEnd:
    """Begin a branch with the first messages of another; return where they end."""
    here, end = ContextId(branch.row.id), ConversationEnd()
    branch.messages += source.messages[:depth]
    for message, blocks in zip(source.messages[:depth], source.blocks, strict=False):
        branch.blocks.append([moved_block(block, here) for block in blocks])
        end.pass_on(message.message, branch.blocks[-1])
    return end


def _read(branch: _NewBranch, client_id: int) -> Document:
    snapshot = branch.content.commits[-1].snapshot
    assert snapshot is not None, "a new branch comes with its whole state"
    return load(snapshot.state, client_id, ())
