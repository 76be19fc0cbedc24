"""`message.import`: conversations of other tools become contexts, one for each branch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from pydantic import Field

from antiphon_kernel.access import check_speaker
from antiphon_kernel.contexts.lineage.forking import (
    Fork,
    InitialChange,
    load,
    start_fork,
    start_with,
)
from antiphon_kernel.contexts.opening import InitialContent
from antiphon_kernel.conversation import (
    BRANCH_SUFFIX,
    CONVERSATION,
    IMPORTED,
    ConversationEnd,
    MessageWriter,
    NewFile,
    NewMessage,
    check_message,
    role_of,
)
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Call
from antiphon_kernel.messages import (
    DocumentBlock,
    ImageBlock,
    ImportedConversation,
    ImportedMessage,
    SystemMessage,
    read_conversations,
    read_loom,
)
from antiphon_kernel.registry import Params, Result, tool
from antiphon_kernel.storage import Blob, ContextRow
from antiphon_kernel.tasks import TimeSlice
from antiphon_kernel.tools._common import read_stored_files
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.errors import ErrorCode, invalid_params
from antiphon_kernel.types.frozen_json import JsonObject, thaw
from antiphon_kernel.types.ids import ContextId, moved_block
from antiphon_kernel.types.json_validation import read_json, unique_names
from antiphon_kernel.types.media_types import is_text_type
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit


class ConversationFormat(StrEnum):
    """Format of a file of conversations."""

    MESSAGES = "messages"
    """OpenAI-shaped or Anthropic-shaped: JSON, or a conversation a line."""
    LOOM = "loom"
    """A JSON object of the files of loom's folder: the text of each, by its path there."""


class ImportMessagesParams(Params):
    """Conversations of another tool."""

    text: str
    """Content of the file."""
    format: ConversationFormat = ConversationFormat.MESSAGES
    """`messages` for JSON of OpenAI's or Anthropic's shape, `loom` for an object of its files."""
    label: str | None = Field(default=None)
    """Label of the new context, with a number behind it if there are several; `conversation` if
    absent."""


class ImportedContext(Result):
    """A conversation that has been imported."""

    context_id: str
    label: str
    messages: int
    """How many messages it had, those of all branches."""
    branches: int
    """How many contexts it takes."""


class ImportMessagesResult(Result):
    """The conversations that have been imported."""

    conversations: list[ImportedContext]
    """In the order of the file."""


@tool("message.import", needs=Permission.OWN, errors=(ErrorCode.TOO_LARGE,))
async def import_messages(call: Call, params: ImportMessagesParams) -> ImportMessagesResult:
    """Make a context of each conversation in a file of another tool; further branches are forks.

    All of the file is there, or nothing. Instructions of the system become blocks of role system;
    fields that have no place in a message are kept in the metadata of its first block. Images, PDFs
    and texts that are in the file are attached as `block.attach` does; what has only an address,
    or is of another type, is kept as it is, and nothing is fetched.
    """
    conversations = await asyncio.to_thread(_read, params)
    planned = [await _plan(call, one) for one in conversations]
    kernel, stem = call.kernel, params.label or "conversation"

    async def start(rows: Sequence[ContextRow]) -> list[InitialContent]:
        contents: list[InitialContent] = []
        for one in planned:
            own = rows[len(contents) : len(contents) + len(one.chains)]
            contents += await one.start(call, own)
        call.check()
        return contents

    async with kernel.trees.writing:
        labels: list[str] = []
        for one in planned:
            root = kernel.contexts.free_label(stem, labels)
            labels.append(root)
            for _ in one.chains[1:]:
                labels.append(kernel.contexts.free_label(root + BRANCH_SUFFIX, labels))
        rows = await kernel.contexts.create_all(labels, kernel.system, start, asker=call.actor)
    made: list[ImportedContext] = []
    for one in planned:
        row, rows = rows[0], rows[len(one.chains) :]
        said = [new.message for chain in one.chains for new in chain.messages]
        count = sum(not isinstance(message, SystemMessage) for message in said)
        branches = len(one.chains)
        made.append(
            ImportedContext(context_id=row.id, label=row.label, messages=count, branches=branches)
        )
    return ImportMessagesResult(conversations=made)


def _read(params: ImportMessagesParams) -> Sequence[ImportedConversation]:
    if params.format is not ConversationFormat.LOOM:
        return read_conversations(params.text)
    try:
        value = read_json(params.text, pairs=unique_names)
    except ValueError as error:
        raise invalid_params(f"The text is no JSON: {error}.", field="text") from error
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise invalid_params(
            "The text must be a JSON object of texts: the files of the folder by their paths.",
            field="text",
        )
    return read_loom(value)


async def _plan(call: Call, conversation: ImportedConversation) -> NewConversation:
    """A conversation as chains of messages, which are known to be writable."""
    said = conversation.messages
    if all(isinstance(one.message, SystemMessage) for one in said):
        raise invalid_params(
            "The conversation has no messages of people, models or tools. Nothing was imported.",
            field="text",
        )
    files = {digest: NewFile.of(data) for digest, data in conversation.files.items()}
    named = [one.message for one in said]
    files |= await read_stored_files(call, named, files)
    _check_files(call, conversation)
    slices = TimeSlice()
    chains: list[MessageChain] = []
    places: list[tuple[int, int]] = []
    """For each message the chain that it is in, and its number in the context of that."""
    for index, one in enumerate(said):
        parent = places[one.parent] if one.parent is not None else (0, 0)
        if not chains or parent != (len(chains) - 1, _length(chains)):
            chains.append(MessageChain(parent if chains else None))
        new = _new_message(one, conversation.extra if index == 0 else JsonObject())
        check_message(new, files, call.kernel.limits)
        check_speaker(role_of(new.message), call.actor.principal, call.role)
        chains[-1].messages.append(new)
        places.append((len(chains) - 1, _length(chains)))
        await slices.pause()
    return NewConversation(chains, conversation.files, files)


def _length(chains: Sequence[MessageChain]) -> int:
    """How many messages the context of the last chain has."""
    last = chains[-1]
    return len(last.messages) + (last.parent[1] if last.parent is not None else 0)


def _check_files(call: Call, conversation: ImportedConversation) -> None:
    limits = call.kernel.limits
    for index, one in enumerate(conversation.messages):
        found = [block for block in one.message.content if isinstance(block, _FILES)]
        what = f"Message {index} has {len(found)} files"
        check_limit(len(found), limits, "attachments_per_message", what, "split the message")
        for block in found:
            size = len(conversation.files.get(block.hash, b""))
            what = f"A file of message {index} has {size} bytes"
            advice = "leave it out of the conversation"
            check_limit(size, limits, "attachment_bytes", what, advice)
            if is_text_type(block.media_type):
                check_limit(size, limits, "attachment_text_bytes", f"{what} of text", advice)


_FILES: Final = (ImageBlock, DocumentBlock)


def _new_message(one: ImportedMessage, conversation: JsonObject) -> NewMessage:
    metadata: dict[str, Any] = {IMPORTED: thaw(one.extra)} if one.extra else {}
    if conversation:
        metadata[CONVERSATION] = thaw(conversation)
    names: dict[int, str] = {}
    for at, block in enumerate(one.message.content):
        name = _file_name(one.extra.get(f"content[{at}]"))
        if isinstance(block, _FILES) and name is not None:
            names[at] = name
    return NewMessage(one.message, metadata, names)


def _file_name(extra: object) -> str | None:
    """The name that another tool has given a file; None if there is none, or it has folders."""
    if not isinstance(extra, Mapping):
        return None
    file = extra.get("file")
    name = file.get("filename") if isinstance(file, Mapping) else extra.get("title")
    is_name = isinstance(name, str) and name.strip() and "/" not in name and name not in (".", "..")
    return name if is_name else None


_IMPORT: Final = "import_messages"
"""Name of the transactions."""

_AT_ONCE: Final = 25
"""Messages of one transaction: they are written without a pause."""


@dataclass(slots=True)
class MessageChain:
    """Messages that follow each other, below a message of an earlier chain: a context of theirs."""

    parent: tuple[int, int] | None = None
    """Number of that chain, and how many messages of its context they follow; None of the first."""
    messages: list[NewMessage] = field(default_factory=list)
    content: InitialContent = field(default_factory=InitialContent)
    """Of its context from the beginning on, with messages of earlier chains."""
    written: list[NewMessage] = field(default_factory=list)
    """Messages in it."""
    blocks: list[list[str]] = field(default_factory=list)
    """Those of each of these."""


@dataclass(frozen=True, slots=True)
class NewConversation:
    """A conversation that is to be written on behalf of somebody."""

    chains: Sequence[MessageChain]
    data: Mapping[str, bytes]
    """Bytes of images and documents that are stored with it, by hash."""
    files: Mapping[str, NewFile]
    """Every image and document that messages name, by hash."""

    async def start(self, call: Call, rows: Sequence[ContextRow]) -> list[InitialContent]:
        """Return the initial content of the context of each chain, which has a row each."""
        actor, time, limits = call.actor, call.kernel.clock.now_ms(), call.kernel.limits
        for row, chain in zip(rows, self.chains, strict=True):
            client = call.kernel.ids.client_id()
            if chain.parent is None:
                changes = self._changes(chain, ConversationEnd(), actor, time)
                chain.content = await start_with(row, changes, actor, time, client)
            else:
                number, depth = chain.parent
                source = self.chains[number]
                end = _move(chain, row, source, depth)
                copied = tuple(block for each in source.blocks[:depth] for block in each)
                changes = self._changes(chain, end, actor, time)
                snapshot = source.content.commits[-1].snapshot
                assert snapshot is not None, "a new branch comes with its whole state"
                document = load(snapshot.state, client, ())
                try:
                    at = source.content.commits[-1].seq
                    fork = Fork(rows[number], at, document, copied, changes)
                    chain.content = await start_fork(row, fork, actor, time, client, limits)
                finally:
                    document.close()
        contents = [chain.content for chain in self.chains]
        if self.data:
            blobs = tuple(Blob(digest, data) for digest, data in self.data.items())
            first, *rest = contents[0].commits
            contents[0] = replace(contents[0], commits=[first._replace(blobs=blobs), *rest])
        return contents

    def _changes(
        self, chain: MessageChain, end: ConversationEnd, actor: Actor, time: int
    ) -> list[InitialChange]:
        def change(messages: Sequence[NewMessage]) -> InitialChange:
            def apply(document: Document, next_id: Callable[[], str]) -> None:
                author, created = actor.principal.id, iso_time(time)
                writer = MessageWriter(document, next_id, author, created, self.files)
                chain.blocks += writer.append(messages, end)
                chain.written += messages

            return InitialChange(_IMPORT, apply)

        said = chain.messages
        return [change(said[at : at + _AT_ONCE]) for at in range(0, len(said), _AT_ONCE)]


def _move(
    chain: MessageChain, row: ContextRow, source: MessageChain, depth: int
) -> ConversationEnd:
    """Begin the context of a chain with the first messages of another; return where they end."""
    end = ConversationEnd()
    chain.written += source.written[:depth]
    for message, blocks in zip(source.written[:depth], source.blocks, strict=False):
        chain.blocks.append([moved_block(block, ContextId(row.id)) for block in blocks])
        end.pass_on(message.message, chain.blocks[-1])
    return end
