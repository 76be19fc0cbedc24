"""`block.create`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from antiphon_kernel.contexts import Context, Submission, header_fields, order_after, order_at_end
from antiphon_kernel.document.content_writes import check_defaults, check_initial, plan_set
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.reply_depth import reply_depth
from antiphon_kernel.document.schema import TEXT, Schema
from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import REFERENCES, Params, Result, tool
from antiphon_kernel.tools.same_context import block_in
from antiphon_kernel.tools.sizes import check_content_size, check_schema_size, check_size
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.types.roles import Permission


class CreateParams(Params):
    """A new block."""

    context: str | None = None
    """Label or id; the default context if it and the parent are absent."""
    parent_id: str | None = None
    """The block it answers. A block of role model has one; a tool_result answers its tool_call."""
    role: Role
    kind: BlockKind
    content: str | dict[str, Any] | list[Any] | None = None
    """The text it starts with; with a schema of another type, its content as `block.get` gives it.
    """
    block_schema: Schema = Field(default=TEXT, alias="schema")
    """What its content looks like: `{"type": "text"}`, a map, a list, a log or a composite."""
    after: str | None = None
    """The block it stands after; at the end if absent."""
    status: Literal["pending", "done"] | None = None
    """Without content: pending. With content: running, or done if asked."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    """tool_kind, tool_name, tool_call_id, input, path, language, ... and anything of your own."""


class CreateResult(Result):
    """Id and version of the block."""

    block_id: str
    version: int
    context_version: int


@tool(
    "block.create",
    needs=Permission.WRITE,
    errors=(
        *REFERENCES,
        ErrorCode.SCHEMA_VIOLATION,
        ErrorCode.TOO_LARGE,
    ),
)
async def create(call: Call, params: CreateParams) -> CreateResult:
    """Create a block at the end of a context or after another block.

    A schema that is not a text's gives it fields, items or sections, which start with their
    defaults; what it then lacks of required fields is told by `block.get` until it is set.
    A person's text that is done from the start is a message: it is answered like a submitted draft.
    """
    context, parent = await _place(call, params)
    document, schema, content = context.document, params.block_schema, params.content
    text = content if isinstance(content, str) and schema == TEXT else ""
    check_size(context, len(text))
    check_schema_size(context, schema)
    check_defaults(schema)
    if parent is not None:
        _reject_too_deep(document, parent, context.limits.parent_depth)
    elif params.role is Role.MODEL or params.kind is BlockKind.TOOL_RESULT:
        raise _without_parent(params)
    after = await block_in(call, context, params.after) if params.after is not None else None
    fields = header_fields(params.metadata, context.limits)
    if params.kind is BlockKind.TOOL_RESULT and parent is not None:
        fields["tool_call_id"] = _call_id(document.header(parent), fields.get("tool_call_id"))
    block = context.next_block_id(call.actor.principal.id)
    status = Status(params.status) if params.status else Status.PENDING
    if content is not None:
        check_content_size(context, content)
        check_initial(schema, content, str(block))
    if content and params.status is None:
        status = Status.RUNNING

    def write() -> None:
        header = BlockHeader(
            id=str(block),
            kind=params.kind,
            role=params.role,
            status=status,
            order=order_after(document, after) if after else order_at_end(document),
            created=iso_time(call.kernel.clock.now_ms()),
            author=call.actor.principal.id,
            parent=parent,
            **fields,
        )
        document.create_block(header, text, schema=schema)
        if content is not None and schema != TEXT:
            for one in plan_set(document, str(block), None, content):
                one.apply()

    if not status.terminal:
        call.kernel.writers.writes(call.actor, str(block))
    written = context.write(call.actor, "create", write, blocks=())
    await written.saved()
    spoken = params.role is Role.USER and params.kind is BlockKind.TEXT and text.strip()
    if status is Status.DONE and spoken and call.actor.principal.kind is PrincipalKind.HUMAN:
        call.kernel.submissions.notify(Submission(context, str(block), text, call.actor))
    return CreateResult(
        block_id=str(block), version=written.versions[str(block)], context_version=written.seq
    )


async def _place(call: Call, params: CreateParams) -> tuple[Context, str | None]:
    """The context that the block comes into, and the block that it answers."""
    if params.parent_id is None:
        return await call.context(params.context), None
    around, parent = await call.block(params.parent_id)
    context = await call.context(params.context) if params.context is not None else around
    if around is not context:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"The parent {params.parent_id} is not in context {context.label}:"
            " a parent and its children share a context.",
            field="parent_id",
        )
    return context, parent


def _without_parent(params: CreateParams) -> AntiphonError:
    if params.kind is BlockKind.TOOL_RESULT:
        said = "A tool_result answers a call: give parent_id, the block of kind tool_call."
    else:
        said = (
            "A block of role model answers another block: give parent_id, the prompt it answers or"
            " whatever else of this context made the model write."
        )
    return AntiphonError(ErrorCode.INVALID_PARAMS, said, field="parent_id")


def _call_id(call: BlockHeader, stated: object) -> str | None:
    """The call's own number, which its result has too."""
    if call.kind != BlockKind.TOOL_CALL:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"A tool_result answers a call, and its parent {call.id} is a {call.kind}: give"
            " parent_id, the block of kind tool_call.",
            field="parent_id",
        )
    if stated is not None and stated != call.tool_call_id:
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS,
            f"The call {call.id} has another tool_call_id than its result was to have: leave it"
            " out, it is taken from the call.",
            field="metadata.tool_call_id",
            expected=call.tool_call_id,
        )
    return call.tool_call_id


def _reject_too_deep(document: Document, parent: str, limit: int) -> None:
    if reply_depth(document, parent, limit) < limit:
        return
    raise AntiphonError(
        ErrorCode.INVALID_PARAMS,
        f"The chain of parents above the new block would be longer than {limit}:"
        " answer a block nearer to the start.",
        field="parent_id",
        limit=limit,
    )
