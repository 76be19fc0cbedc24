"""The conversation as a tree: `message.append`, `edit`, `split`, `delete` and its reading."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import takewhile
from typing import Any, Final, Self

from pydantic import Field

from antiphon_kernel.access import check_arrange, check_draft, check_speaker
from antiphon_kernel.contexts import CommitHandle, Context, UndoKind
from antiphon_kernel.contexts.lineage.forking import Fork, InitialChange, read_now, split_calls
from antiphon_kernel.contexts.ordering import order_after
from antiphon_kernel.conversation import (
    MESSAGE,
    Branch,
    ConversationEnd,
    MessagePath,
    MessageWriter,
    NewFile,
    NewMessage,
    PathMessage,
    TreeNode,
    check_message,
    count_kept,
    group_of,
    layout_of,
    message_headers,
    role_of,
)
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import TEXT
from antiphon_kernel.kernel import Call
from antiphon_kernel.messages import (
    AssistantMessage,
    CorrelationError,
    DocumentBlock,
    ImageBlock,
    Message,
    MessageProblem,
    MessageRole,
    TextBlock,
    ToolMessage,
    dump_message,
    message_digest,
    normalize_message,
    normalize_messages,
    open_tool_uses,
    tool_uses,
)
from antiphon_kernel.registry import REFERENCES, ContextParams, Params, Result, tool
from antiphon_kernel.text.graphemes import boundary_after, boundary_before
from antiphon_kernel.tools._common import PageResult, check_hiding, read_stored_files
from antiphon_kernel.tools.context import create_fork
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import BlockKind, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.ids import ContextId, moved_block
from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit

_ERRORS: Final = (*REFERENCES, ErrorCode.TOO_LARGE)


class SiblingPlace(Result):
    """A message in its branch."""

    message_id: str
    """Its first block."""
    message_name: str
    context_id: str
    label: str

    @classmethod
    def of(cls, branch: Branch, index: int, **fields: Any) -> Self:
        """Return the message of this number in a branch."""
        context, block = branch.context, branch.messages[index].id
        return cls(
            message_id=block,
            message_name=context.block_name(block),
            context_id=context.id,
            label=context.label,
            **fields,
        )


class MessageInfo(SiblingPlace):
    """One message of a conversation, and a context that has it."""

    blocks: list[str]
    """The blocks that it is made of."""
    blocks_names: list[str]
    message: dict[str, Any]
    """Role and content blocks."""


class MessageListResult(PageResult):
    """Messages of a conversation."""

    messages: list[MessageInfo]
    """In the order of the conversation, or of the branches."""


class SiblingsResult(MessageListResult):
    """The messages that follow one and the same message, each in a branch."""

    position: int
    """The index of the message that was asked about, from 0."""
    count: int
    """Number of all of them."""


class AppendMessagesParams(Params):
    """Messages, and the message that they follow."""

    parent: str | None = None
    """A block of the message that they follow."""
    context: str | None = None
    """Label or id of a context in whose tree they are a conversation from its beginning. The
    default context if this and the parent are absent."""
    messages: list[Any]
    """Each a JSON object: `role`, and `content` as a string or as content blocks."""


class MessagePlace(Result):
    """Place of a message in its tree."""

    message_id: str | None = None
    """The first block of the last message; absent if there is none."""
    message_name: str | None = None
    context_id: str
    label: str
    context_version: int
    reused: int
    """How many of the messages were there."""
    created: list[str]
    """The first block of each message that is new."""
    created_names: list[str]
    forked: bool
    """Whether they are in a context of their own now."""


@tool("message.append", needs=Permission.WRITE, errors=_ERRORS)
async def append_messages(call: Call, params: AppendMessagesParams) -> MessagePlace:
    """Continue a conversation below a message, or from its beginning.

    What is there already, in whatever branch of the conversation, is used as it is: messages are
    the same if they say the same, white space at the ends and the order of keys aside. Only the
    rest is written, at the end of that branch, or in a fork if something else follows there. The
    same messages twice are the same place. Nobody is asked to answer. All or nothing.

    A person's message is also taken by `POST /messages/PARENT/append` at the address of the
    kernel's HTTP endpoint: a JSON object with the `content` alone, text only.
    """
    if params.parent is not None and params.context is not None:
        raise invalid_params(
            "message.append takes a parent or a context, and found both: a parent says where the"
            " messages go on, a context that they are a conversation from its beginning.",
            field="context",
        )
    messages = normalize_messages(params.messages)
    files = await read_stored_files(call, messages)
    trees = call.kernel.trees
    async with trees.writing:
        if params.parent is not None:
            branch, index = await _find(call, params.parent)
            depth = index + 1
        else:
            branch, depth = await trees.branch(await call.context(params.context)), 0
        return await _append_below(call, branch, depth, messages, files)


async def _append_below(
    call: Call,
    branch: Branch,
    depth: int,
    messages: Sequence[Message],
    files: Mapping[str, NewFile],
) -> MessagePlace:
    """Continue the first `depth` messages of a branch; the trees must be held for writing."""
    for message in messages:
        check_message(NewMessage(message), files, call.kernel.limits)
    _check_calls(branch.path, depth, messages)
    node, reused = branch.nodes[depth], 0
    for message in messages:
        child = node.children.get(message_digest(message))
        if child is None:
            break
        node, reused = child, reused + 1
    if not branch.is_on(node):
        branch = _first_on(node)
    rest = messages[reused:]
    if not rest:
        await branch.context.wait_persisted()
        return _place(branch, node.depth, reused)
    _check_size(call, rest)
    for one in rest:
        check_speaker(role_of(one), call.actor.principal, call.role)
    ending = _ending(node, branch)
    end = _end(ending or branch, node.depth, rest)

    def append(writer: MessageWriter) -> None:
        calls = {call_id: _block_in(writer, block) for call_id, block in end.calls.items()}
        prompt = _block_in(writer, end.prompt) if end.prompt is not None else None
        writer.append(map(NewMessage, rest), ConversationEnd(prompt, calls))

    change = _change(call, "append_messages", append, files)
    if ending is not None:
        await _write(call, ending, change)
        return _place(ending, node.depth, reused, len(rest))
    forked = await fork_branch(call, branch, node.depth, change)
    return _place(forked, node.depth, reused, len(rest), forked=True)


def _check_size(call: Call, messages: Sequence[Message]) -> None:
    count = sum(len(message.content) for message in messages)
    what, advice = f"The new messages have {count} content blocks", "send fewer at a time"
    check_limit(count, call.kernel.limits, "content_blocks_per_append", what, advice)


def _check_calls(path: MessagePath, depth: int, messages: Sequence[Message]) -> None:
    """Refuse messages whose calls and results do not fit what is before them."""
    before: list[Message] = []
    named = {use.id for message in messages for use in tool_uses(message)}
    named |= {one.tool_call_id for one in messages if isinstance(one, ToolMessage)}
    for call_id in sorted(named):
        at, answer = path.call_index(call_id), path.answers.get(call_id)
        if at is None or at >= depth:
            continue
        uses = tool_uses(path.messages[at].message)
        before.append(AssistantMessage(tuple(one for one in uses if one.id == call_id)))
        if answer is not None and answer < depth:
            before.append(path.messages[answer].message)
    try:
        open_tool_uses([*before, *messages])
    except CorrelationError as error:
        if error.index is not None:
            error.index -= len(before)
            error.say_where()
        raise


def _first_on(node: TreeNode) -> Branch:
    """The oldest of the contexts that begin with the messages of a node."""
    return min(node.branches(), key=lambda one: one.row.number)


def _ending(node: TreeNode, preferred: Branch) -> Branch | None:
    """A context that ends with a node, and where nothing is being written."""
    ends = [preferred, *node.ends.values()]
    return next((one for one in ends if one.nodes[-1] is node and not one.path.is_followed()), None)


def _change(
    call: Call,
    operation: str,
    change: Callable[[MessageWriter], object],
    files: Mapping[str, NewFile],
) -> InitialChange:
    """Return a change of the messages of a branch, or of its fork, there from the start."""

    def apply(document: Document, next_id: Callable[[], str]) -> None:
        created = iso_time(call.kernel.clock.now_ms())
        change(MessageWriter(document, next_id, call.actor.principal.id, created, files))

    return InitialChange(operation, apply)


async def _write(
    call: Call, branch: Branch, change: InitialChange, blocks: Sequence[str] = ()
) -> None:
    """Change the messages of a branch where they are; they are up to date when this returns."""
    context, author = branch.context, call.actor.principal.id

    def write() -> None:
        change.apply(context.document, lambda: str(context.next_block_id(author)))

    await context.write(call.actor, change.operation, write, blocks=blocks).saved()
    await call.kernel.trees.branch(context)


def _block_in(writer: MessageWriter, block: str) -> str:
    """Return the id that a block has in the context that is being written, which may be a fork."""
    return moved_block(block, ContextId(writer.document.context or ""))


def _end(branch: Branch, depth: int, messages: Sequence[Message]) -> ConversationEnd:
    """The end of the first messages of a branch, as far as others that follow refer to it."""
    before = reversed(branch.messages[:depth])
    prompt = next((one.id for one in before if one.message.role is MessageRole.USER), None)
    wanted = [one.tool_call_id for one in messages if isinstance(one, ToolMessage)]
    found = ((call_id, branch.path.callers.get(call_id)) for call_id in wanted)
    calls = {call_id: block for call_id, block in found if block is not None}
    return ConversationEnd(prompt, calls)


async def fork_branch(
    call: Call, branch: Branch, depth: int, change: InitialChange | None = None
) -> Branch:
    """Make a branch that has the first `depth` messages of this one, and a change.

    The trees must be held for writing.

    Raises:
        AntiphonError: permission_denied, storage_failed.
    """
    context, path = branch.context, branch.path
    blocks: list[str] = []
    reach = branch.messages[depth - 1].reach if depth else -1
    for place in range(reach + 1):
        block = context.document.order.at(place)
        index = path.index.get(block)
        # What is no message goes along with those around it, unless it is still being written.
        is_open = context.document.header(block).status in (Status.PENDING, Status.RUNNING)
        if (index is not None and index < depth) or (index is None and not is_open):
            blocks.append(block)
    # A call that is still written is left out; its result is, too.
    torn = {result for _, result in split_calls(context.document, blocks)}
    blocks = [block for block in blocks if block not in torn]
    at = context.seq
    document = await read_now(context, call.kernel.ids.client_id())
    try:
        fork = Fork(context.row, at, document, tuple(blocks), (change,) if change else ())
        stem = call.kernel.trees.stem(context.row)
        row, _ = await create_fork(call, fork, call.kernel.contexts.free_label(stem))
    finally:
        document.close()
    return await call.kernel.trees.branch(await call.kernel.context(row.id))


def _place(
    branch: Branch, depth: int, reused: int, created: int = 0, *, forked: bool = False
) -> MessagePlace:
    messages, name = branch.messages[: depth + created], branch.context.block_name
    return MessagePlace(
        message_id=messages[-1].id if messages else None,
        message_name=name(messages[-1].id) if messages else None,
        context_id=branch.context.id,
        label=branch.context.label,
        context_version=branch.context.seq,
        reused=reused,
        created=[one.id for one in messages[depth:]],
        created_names=[name(one.id) for one in messages[depth:]],
        forked=forked,
    )


class EditMessageParams(Params):
    """Message, and its new content."""

    message: str
    """A block of it."""
    content: str | list[Any]
    """Text, or content blocks."""
    in_place: bool = False
    """Whether it changes for everybody, also if something follows it."""


@tool("message.edit", needs=Permission.WRITE, errors=_ERRORS)
async def edit_message(call: Call, params: EditMessageParams) -> MessagePlace:
    """Give a message another content: in place if nothing follows it, else in a branch.

    The branch begins with the same messages; of the one that is edited, it keeps what both texts
    have in common, in whole characters as people see them, with its authors. A message that is
    there beside it already is used as it is. Results of calls stay behind their calls. A text
    leaves images and documents where they are.

    A text is also taken by `PUT /messages/MESSAGE/content`, as `message.append` describes it.
    """
    trees = call.kernel.trees
    async with trees.writing:
        branch, index = await _find(call, params.message)
        new = _edited(branch.messages[index].message, params.content)
        files = await read_stored_files(call, [new])
        branch, index = await _find(call, params.message)
        old = branch.messages[index]
        new = _edited(old.message, params.content)
        _check_size(call, [new])
        check_message(NewMessage(new), files, call.kernel.limits)
        before, node = branch.nodes[index], branch.nodes[index + 1]
        if new == old.message:
            await branch.context.wait_persisted()
            return _place(branch, index + 1, 1)

        def edit(writer: MessageWriter) -> None:
            writer.change([_block_in(writer, block) for block in old.blocks], new)

        change = _change(call, "edit_message", edit, files)
        alone = not node.children and branch.nodes[-1] is node and not branch.path.is_followed()
        if params.in_place or alone:
            path = [one.message for one in branch.messages]
            path[index] = new
            _check_unparted(path)
            _require_text_blocks(branch.context, old)
            for block in _replaced(call, branch.context, old, new, files):
                header = branch.context.document.header(block)
                check_arrange(header, call.actor.principal, call.role)
            await _write(call, branch, change, old.blocks)
            return _place(branch, index + 1, 0)
        there = before.children.get(message_digest(new))
        if there is not None:
            found = branch if branch.is_on(there) else _first_on(there)
            await found.context.wait_persisted()
            return _place(found, there.depth, 1)
        _check_calls(branch.path, index, [new])
        _require_text_blocks(branch.context, old)
        _replaced(call, branch.context, old, new, files)
        made = await fork_branch(call, branch, index + 1, change)
        return _place(made, index, 0, 1, forked=True)


def _edited(old: Message, content: object) -> Message:
    fields: dict[str, Any] = {"role": str(old.role), "content": content}
    if isinstance(old, ToolMessage):
        fields |= {"tool_call_id": old.tool_call_id, "is_error": old.is_error}
    new = normalize_message(fields)
    if not isinstance(content, str):
        return new
    files = [one for one in old.content if isinstance(one, ImageBlock | DocumentBlock)]
    before = list(takewhile(lambda one: isinstance(one, ImageBlock | DocumentBlock), old.content))
    whole = (*before, *new.content, *files[len(before) :])
    return replace(new, content=whole)  # type: ignore[arg-type]


def _check_unparted(path: Sequence[Message]) -> None:
    """Refuse a path with a result whose call is gone."""
    try:
        open_tool_uses(path)
    except CorrelationError as error:
        error.reason += (
            ": a call is never parted from its result; keep the call, or change both in a branch"
            " of their own"
        )
        error.say_where()
        raise


def _require_text_blocks(context: Context, message: PathMessage) -> None:
    for block in message.blocks:
        if context.document.schema(block) != TEXT:
            raise invalid_params(
                f"Block {block} has fields or sections and is no text: change it with"
                " block.set_field and its like.",
                field="message",
            )


def _replaced(
    call: Call,
    context: Context,
    old: PathMessage,
    new: Message,
    files: Mapping[str, NewFile],
) -> Sequence[str]:
    """The blocks of a message that it has no more when it is edited; checks who writes others."""
    kept = count_kept(context.document, old.blocks, message_headers(new, files))
    if kept < len(new.content):
        check_speaker(role_of(new), call.actor.principal, call.role)
    return old.blocks[kept:]


class SplitMessageParams(Params):
    """Text of a message, and where it is cut."""

    message: str
    """The block with the text."""
    at: int = Field(ge=1)
    """Code points that stay in the first message."""


@tool("message.split", needs=Permission.WRITE, errors=_ERRORS)
async def split_message(call: Call, params: SplitMessageParams) -> MessagePlace:
    """Cut a message in two, between whole characters as people see them; no text changes.

    What stands behind the place is a message of the same role and author of its own. To make one
    of them again, give the first its text back by `block.undo`, with the `context_version` that is
    answered here as `edit`, and leave the second out by `block.exclude`.
    """
    trees = call.kernel.trees
    async with trees.writing:
        branch, index = await _find(call, params.message)
        context, old = branch.context, branch.messages[index]
        _, block = await call.block(params.message)
        document = context.document
        header = document.header(block)
        text = document.text(block)
        is_text = header.kind in (BlockKind.TEXT, BlockKind.THINKING)
        if not is_text or document.schema(block) != TEXT:
            raise invalid_params(
                f"Block {block} is a {header.kind}, and only texts of people and models are split.",
                field="message",
            )
        check_arrange(header, call.actor.principal, call.role)
        _check_cut(text, params.at)
        position = old.blocks.index(block)
        behind = old.blocks[position + 1 :]

        def write() -> None:
            new = str(context.next_block_id(call.actor.principal.id))
            rest = text[params.at :]
            order = order_after(document, block)
            metadata = {name: one for name, one in header.metadata.items() if name != MESSAGE}
            if behind:
                metadata[MESSAGE] = group_of(new)
            document.splice(block, params.at, len(rest), "")
            made = header._replace(id=new, order=order, metadata=metadata)
            document.create_block(made, rest)
            for one in behind:
                known = document.header(one).metadata
                document.set_fields(one, metadata={**known, MESSAGE: group_of(new)})

        written = context.write(
            call.actor, "split_message", write, blocks=old.blocks, undo=UndoKind.SPLIT
        )
        await written.saved()
        await trees.branch(context)
        place = _place(branch, index + 1, 1, 1)
        return place.model_copy(update={"context_version": written.seq})


def _check_cut(text: str, at: int) -> None:
    before = boundary_before(text, at)
    if at >= len(text):
        wrong = f"the text has {len(text)} code points: name a place inside it"
    elif before != at:
        wrong = (
            f"that is inside of one character as people see it: name {before} or"
            f" {boundary_after(text, at)}"
        )
    elif not text[:at].strip() or not text[at:].strip():
        wrong = "one of the two messages would be blank: name a place between two words"
    else:
        return
    raise invalid_params(f"The text cannot be cut at {at}: {wrong}.", field="at", found=at)


class Descendants(StrEnum):
    """Way in which what follows a deleted message is treated."""

    CASCADE = "cascade"
    """It is deleted too, in every branch."""
    REPARENT = "reparent"
    """It follows the message before, at its place."""


class DeleteMessagesParams(Params):
    """Messages to delete."""

    messages: list[str] = Field(min_length=1, max_length=1_000)
    """A block of each."""
    descendants: Descendants
    """`cascade` deletes what follows them too, `reparent` lets it follow the message before."""


class DeleteMessagesResult(Result):
    """Messages that are not in the conversation any more."""

    deleted: list[str]
    """The first block of each, in every branch that had it."""
    deleted_names: list[str]
    missing: list[str]
    """References that are of no message."""


_MISSING: Final = (
    ErrorCode.BLOCK_NOT_FOUND,
    ErrorCode.CONTEXT_NOT_FOUND,
    ErrorCode.INVALID_PARAMS,
)
"""Errors of a reference to what is no message."""


@tool("message.delete", needs=Permission.WRITE, errors=(ErrorCode.AMBIGUOUS_ID,))
async def delete_messages(call: Call, params: DeleteMessagesParams) -> DeleteMessagesResult:
    """Take messages out of a conversation, in every branch that has them. All or nothing.

    Their blocks are excluded: models do not read them, people still can, and `block.exclude`
    brings them back. A call goes with its results; a result does not go alone. A model takes out
    only what it could exclude.
    """
    trees = call.kernel.trees
    async with trees.writing:
        doomed = defaultdict[Branch, set[int]](set)
        missing: list[str] = []
        found: list[tuple[Context, str]] = []
        for reference in params.messages:
            try:
                branch, index = await _find(call, reference)
                found.append((branch.context, branch.messages[index].id))
            except AntiphonError as error:
                if error.code not in _MISSING:
                    raise
                missing.append(reference)
        for context, _ in found:
            await layout_of(context).load()
        firsts = [(await trees.branch(context), block) for context, block in found]
        for first, block in firsts:
            at = first.path.index.get(block)
            if at is None:
                continue  # somebody has taken it out meanwhile
            for branch in first.nodes[at + 1].branches():
                last = len(branch.messages) if params.descendants is Descendants.CASCADE else 0
                doomed[branch].update(range(at, max(last, at + 1)))
        blocks = {branch: _with_results(branch, one) for branch, one in doomed.items()}
        for branch, excluded in blocks.items():
            for block in excluded:
                check_arrange(
                    branch.context.document.header(block), call.actor.principal, call.role
                )
                check_draft(branch.context.document, block, call.actor.principal)
                check_hiding(branch.context, block, call.actor.principal)
        # Handed to the journal together, they are one transaction there.
        written = [_exclude(call, branch, excluded) for branch, excluded in blocks.items()]
        for one in written:
            await one.saved()
        deleted = [
            branch.messages[index].id
            for branch, indexes in doomed.items()
            for index in sorted(indexes)
        ]
        names = [call.kernel.block_name(one) for one in deleted]
        return DeleteMessagesResult(deleted=deleted, deleted_names=names, missing=missing)


def _exclude(call: Call, branch: Branch, blocks: Sequence[str]) -> CommitHandle:
    document = branch.context.document

    def write() -> None:
        for block in blocks:
            document.set_fields(block, excluded=True)

    return branch.context.write(call.actor, "delete_messages", write, blocks=blocks, undo=None)


def _with_results(branch: Branch, indexes: set[int]) -> list[str]:
    """The blocks of messages, those of the results of their calls included.

    Raises:
        CorrelationError: if a result would go without its call.
    """
    path = branch.path
    for index in sorted(indexes):
        for use in tool_uses(path.messages[index].message):
            answer = path.answers.get(use.id)
            if answer is not None:
                indexes.add(answer)
    for index in sorted(indexes):
        message = path.messages[index].message
        if isinstance(message, ToolMessage):
            at = path.call_index(message.tool_call_id)
            if at is not None and at not in indexes:
                call_block = path.callers.get(message.tool_call_id)
                raise CorrelationError(
                    MessageProblem.UNANSWERED_CALL,
                    f"the message {path.messages[index].id} is the result of the call"
                    f" {call_block}, and is never parted from it: delete the message"
                    f" {path.messages[at].id}, which takes the result with it",
                    path="messages",
                    call_id=message.tool_call_id,
                )
    return [block for index in sorted(indexes) for block in path.messages[index].blocks]


class PageParams(Params):
    """Part of a list of messages."""

    after_message: str | None = None
    """Go on after this message: the `next` of the previous answer."""
    limit: int = Field(default=100, ge=1, le=1_000)
    """Messages in one answer; fewer, if together they are longer than one answer may be."""


class PathParams(PageParams):
    """A message, or a context."""

    message: str | None = None
    """A block of the last message wanted."""
    context: str | None = None
    """Label or id of the context whose messages are wanted, if no message is named."""


@tool("message.path", needs=Permission.READ, errors=REFERENCES)
async def message_path(call: Call, params: PathParams) -> MessageListResult:
    """Read the messages of a conversation from its beginning up to a message, or to the end.

    Page by page: messages that come meanwhile neither hide others nor show them twice. Also with
    `GET /messages?context=` at the address of the kernel's HTTP endpoint, or with
    `GET /messages/MESSAGE/path`; `/children` and `/siblings` are there too.
    """
    last = await _last_shown(call, params)
    branch, index = await _wanted(call, params)
    if last is not None and last[0] is not branch.context:
        raise _no_place(params.after_message, f"context {branch.context.label}")
    end = len(branch.messages) if index is None else index + 1
    return _page(call, params, _behind(last, ((branch, at) for at in range(end))))


@tool("message.children", needs=Permission.READ, errors=REFERENCES)
async def message_children(call: Call, params: PathParams) -> MessageListResult:
    """Read the messages that follow a message, one for each branch; oldest branch first.

    Of a context, those that its conversation begins with. Page by page, as `message.path`.
    """
    last = await _last_shown(call, params)
    branch, index = await _wanted(call, params)
    children = _children(branch.nodes[0 if index is None else index + 1])
    return _page(call, params, _behind(last, children))


class MessageParams(PageParams):
    """A message."""

    message: str
    """A block of it."""


@tool("message.siblings", needs=Permission.READ, errors=REFERENCES)
async def message_siblings(call: Call, params: MessageParams) -> SiblingsResult:
    """Read a message and those that stand in its place in other branches; oldest branch first.

    Page by page, as `message.path`.
    """
    last = await _last_shown(call, params)
    branch, index = await _find(call, params.message)
    found = _children(branch.nodes[index])
    position = _position(found, branch.nodes[index + 1])
    page = _page(call, params, _behind(last, found))
    return SiblingsResult(**dict(page), position=position, count=len(found))


class ForkingMessage(Result):
    """A message that has siblings."""

    blocks: list[str]
    """The blocks that it is made of."""
    blocks_names: list[str]
    position: int
    """Its place among the siblings, counted from 0."""
    siblings: list[SiblingPlace]
    """It and those that stand in its place in other branches, oldest branch first."""


class BranchesResult(Result):
    """The messages of a context that have siblings."""

    messages: list[ForkingMessage]
    """In the order of the conversation."""


@tool("message.branches", needs=Permission.READ, errors=REFERENCES)
async def message_branches(call: Call, params: ContextParams) -> BranchesResult:
    """Read where a conversation branches: its messages that have siblings, without their text."""
    branch = await call.kernel.trees.branch(await call.context(params.context))
    found: list[ForkingMessage] = []
    for index, one in enumerate(branch.messages):
        if len(branch.nodes[index].children) < 2:
            continue
        children, mine = _children(branch.nodes[index]), branch.nodes[index + 1]
        found.append(
            ForkingMessage(
                blocks=list(one.blocks),
                blocks_names=[branch.context.block_name(block) for block in one.blocks],
                position=_position(children, mine),
                siblings=[SiblingPlace.of(*child) for child in children],
            )
        )
    return BranchesResult(messages=found)


class MessageSearchParams(PageParams):
    """Text to look for in a conversation."""

    text: str = Field(min_length=1)
    """Large and small letters are the same."""
    context: str | None = None
    """Label or id of a context of the conversation; the default context if absent."""


@tool("message.search", needs=Permission.READ, errors=(*REFERENCES, ErrorCode.TOO_LARGE))
async def search_messages(call: Call, params: MessageSearchParams) -> MessageListResult:
    """Find messages by their text in every branch of a conversation, each of them once.

    Branch by branch, the oldest first, and page by page as `message.path`.
    """
    size, limits = len(params.text), call.kernel.limits
    what = f"The text has {size} code points"
    check_limit(size, limits, "query_code_points", what, "look for a part of it")
    context = await call.context(params.context)
    last, trees = await _last_shown(call, params), call.kernel.trees
    await trees.branch(context)
    family, wanted = trees.family(context), params.text.casefold()
    if last is not None and all(one.context is not last[0] for one in family):
        raise _no_place(params.after_message, f"the conversation of {context.label}")
    first_of: dict[TreeNode, tuple[Branch, int]] = {}
    for one in family:
        for index, node in enumerate(one.nodes[1:]):
            first_of.setdefault(node, (one, index))

    def has_text(found: tuple[Branch, int]) -> bool:
        content = found[0].messages[found[1]].message.content
        texts = (part.text for part in content if isinstance(part, TextBlock))
        return wanted in "\n".join(texts).casefold()

    return _page(call, params, filter(has_text, _behind(last, first_of.values())))


async def _last_shown(call: Call, params: PageParams) -> tuple[Context, str] | None:
    """Return the message with which the page before has ended, by one of its blocks."""
    reference = params.after_message
    return await call.block(reference) if reference is not None else None


def _behind(
    last: tuple[Context, str] | None, found: Iterable[tuple[Branch, int]]
) -> Iterator[tuple[Branch, int]]:
    """Yield those of the messages, branch by branch, that stand behind the last one shown."""
    after = 0, 0
    if last is not None:
        after = last[0].row.number, last[0].document.order.index(last[1]) + 1
    for branch, index in found:
        if (branch.row.number, branch.messages[index].start) >= after:
            yield branch, index


async def _wanted(call: Call, params: PathParams) -> tuple[Branch, int | None]:
    """Return the message that is named, or the branch that a context is."""
    if params.message is not None:
        return await _find(call, params.message)
    return await call.kernel.trees.branch(await call.context(params.context)), None


def _children(node: TreeNode) -> list[tuple[Branch, int]]:
    firsts = sorted(map(_first_on, node.children.values()), key=lambda one: one.row.number)
    return [(one, node.depth) for one in firsts]


def _position(children: Sequence[tuple[Branch, int]], node: TreeNode) -> int:
    return next(at for at, (one, place) in enumerate(children) if one.nodes[place + 1] is node)


def _no_place(reference: str | None, where: str) -> AntiphonError:
    return invalid_params(
        f"The message {quote(reference)} is none of {where}: give the `next` of the answer before.",
        field="after_message",
    )


def _page(call: Call, params: PageParams, found: Iterable[tuple[Branch, int]]) -> MessageListResult:
    """As many messages as one answer may have, at least one."""
    shown: list[MessageInfo] = []
    room, truncated = call.kernel.limits.page_code_points, False
    for branch, index in found:
        one, name = branch.messages[index], branch.context.block_name
        info = MessageInfo.of(
            branch,
            index,
            blocks=list(one.blocks),
            blocks_names=[name(block) for block in one.blocks],
            message=dump_message(one.message),
        )
        room -= len(json.dumps(info.message, ensure_ascii=False))
        truncated = len(shown) == params.limit or (room < 0 and bool(shown))
        if truncated:
            break
        shown.append(info)
    last = shown[-1] if truncated else None
    return MessageListResult(
        messages=shown,
        truncated=truncated,
        next=last.message_id if last else None,
        next_name=last.message_name if last else None,
    )


async def _find(call: Call, reference: str) -> tuple[Branch, int]:
    """Return the branch and the number of the message that a block is part of.

    Raises:
        AntiphonError: block_not_found, ambiguous_id, context_not_found; invalid_params if it is of
            no message.
    """
    context, block = await call.block(reference)
    branch = await call.kernel.trees.branch(context)
    index = branch.path.index.get(block)
    if index is None:
        raise invalid_params(
            f"Block {quote(reference)} is no message: it is a draft, still being written, excluded"
            " or of the system. message.path names the messages of a context.",
            field="message",
        )
    return branch, index
