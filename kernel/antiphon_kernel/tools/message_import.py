"""`message.import`: conversations of other tools become contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, Final

from pydantic import Field

from antiphon_kernel.access import check_speaker
from antiphon_kernel.contexts import (
    InitialChange,
    InitialContent,
    NewMessage,
    check_message,
    role_of,
    start_with,
)
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Call
from antiphon_kernel.messages import (
    ImportedConversation,
    ImportedMessage,
    SystemMessage,
    read_conversations,
    read_loom,
)
from antiphon_kernel.registry import Params, Result, tool
from antiphon_kernel.storage import ContextRow
from antiphon_kernel.tools.message import append_below, message_writer
from antiphon_kernel.types.enums import Role
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.frozen_json import thaw
from antiphon_kernel.types.json_validation import read_json, unique_names
from antiphon_kernel.types.roles import Permission

_IMPORT: Final = "import_messages"
_EXTRA: Final = "imported"
"""The key of a block's metadata with the fields that have no place in its message."""
_CONVERSATION: Final = "imported_conversation"
"""The same of the conversation that it begins."""


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

    All is read and checked before anything is written. Instructions of the system become blocks of
    role system; fields that have no place in a message are kept in the metadata of its first
    block. A conversation with images or documents in it is refused: their bytes cannot be kept.
    """
    if params.format is ConversationFormat.LOOM:
        conversations = read_loom(_files(params.text))
    else:
        conversations = read_conversations(params.text)
    chains = [_chains(call, one) for one in conversations]
    stem = params.label or "conversation"
    made = [await _make(call, one, stem) for one in chains]
    return ImportMessagesResult(conversations=made)


class _Chain:
    """Messages that follow each other, below a message of an earlier chain."""

    def __init__(self, parent: int | None) -> None:
        self.parent = parent
        self.indexes: list[int] = []
        self.messages: list[NewMessage] = []


def _files(text: str) -> dict[str, str]:
    try:
        value = read_json(text, pairs=unique_names)
    except ValueError as error:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS, f"The text is no JSON: {error}.", field="text"
        ) from error
    if not isinstance(value, dict) or not all(isinstance(one, str) for one in value.values()):
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            "The text must be a JSON object of texts: the files of the folder by their paths.",
            field="text",
        )
    return value


def _chains(call: Call, conversation: ImportedConversation) -> list[_Chain]:
    """The messages of a conversation as chains, which are known to be writable."""
    if conversation.files:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"The conversation has {len(conversation.files)} images or documents in it, whose"
            " bytes cannot be kept: take them out, and import again. Nothing was imported.",
            field="text",
        )
    spoken = _Spoken(conversation)
    chains: list[_Chain] = []
    for index, new in spoken.messages():
        parent = spoken.parent(index)
        last = chains[-1] if chains else None
        if last is None or parent is None or last.indexes[-1] != parent:
            last = _Chain(parent)
            chains.append(last)
        last.indexes.append(index)
        last.messages.append(new)
        check_message(new, call.kernel.limits)
        roles = [role_of(new.message), *(Role.SYSTEM for _ in (*new.before, *new.behind))]
        for role in roles:
            check_speaker(role, call.actor.principal, call.role)
    if not chains:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            "The conversation has no messages of people, models or tools. Nothing was imported.",
            field="text",
        )
    return chains


class _Spoken:
    """The messages of a conversation, each with the instructions around it."""

    def __init__(self, conversation: ImportedConversation) -> None:
        self._conversation = conversation
        self._all = conversation.messages
        answered = {self._above(index) for index in range(len(self._all))}
        self._last = {index for index in range(len(self._all)) if index not in answered}

    def _above(self, index: int) -> int | None:
        return self._all[index].parent

    def parent(self, index: int) -> int | None:
        """The nearest message above that is none of the system."""
        above = self._above(index)
        while above is not None and isinstance(self._all[above].message, SystemMessage):
            above = self._above(above)
        return above

    def messages(self) -> Iterator[tuple[int, NewMessage]]:
        """Yield each message, and its index."""
        first = True
        for index, one in enumerate(self._all):
            if isinstance(one.message, SystemMessage):
                continue
            before = tuple(self._instructions(self._above(index)))[::-1]
            behind = tuple(self._trailing(index))
            metadata = self._metadata(one, before, behind)
            if first and self._conversation.extra:
                metadata[_CONVERSATION] = thaw(self._conversation.extra)
            first = False
            systems = [said.message for said in (*before, *behind)]
            kept = tuple(said for said in systems if isinstance(said, SystemMessage))
            yield index, NewMessage(one.message, metadata, kept[: len(before)], kept[len(before) :])

    def _instructions(self, index: int | None) -> Iterator[ImportedMessage]:
        """The messages of the system from this one upwards."""
        while index is not None and isinstance(self._all[index].message, SystemMessage):
            yield self._all[index]
            index = self._above(index)

    def _trailing(self, index: int) -> Iterator[ImportedMessage]:
        """The messages of the system that end a branch behind a message."""
        for last in self._last:
            found = list(self._instructions(last))
            if found and self.parent(last) == index:
                yield from reversed(found)

    @staticmethod
    def _metadata(one: ImportedMessage, *around: Sequence[ImportedMessage]) -> dict[str, Any]:
        metadata: dict[str, Any] = {}
        if one.extra:
            metadata[_EXTRA] = thaw(one.extra)
        extras = [[thaw(said.extra) for said in part] for part in around]
        if any(extra for part in extras for extra in part):
            metadata["imported_system"] = extras
        return metadata


async def _make(call: Call, chains: Sequence[_Chain], stem: str) -> ImportedContext:
    """Make the context of a conversation, and its branches."""
    kernel, first = call.kernel, chains[0]

    def apply(document: Document, next_id: Callable[[], str]) -> None:
        message_writer(call, document, next_id).append(first.messages, None, {})

    async def beginning(row: ContextRow) -> InitialContent:
        change = InitialChange(_IMPORT, apply)
        time, client = kernel.clock.now_ms(), kernel.ids.client_id()
        return start_with(row, change, call.actor, time, client)

    async with kernel.trees.writing:
        label = kernel.contexts.free_label(stem)
        row = await kernel.contexts.create(label, kernel.system, beginning, asker=call.actor)
        root = await kernel.trees.branch(await kernel.context(row.id))
        places = {index: (root, depth) for depth, index in enumerate(first.indexes, 1)}
        branches = {row.id}
        for chain in chains[1:]:
            branch, depth = places[chain.parent] if chain.parent is not None else (root, 0)
            placed = await append_below(call, branch, depth, chain.messages)
            context = await kernel.context(placed.context_id)
            there = await kernel.trees.branch(context)
            branches.add(context.id)
            for number, index in enumerate(chain.indexes, depth + 1):
                places[index] = there, number
    return ImportedContext(
        context_id=row.id, label=row.label, messages=len(places), branches=len(branches)
    )
