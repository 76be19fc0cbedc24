"""A draft is changed by its author only: through every tool, and by raw updates."""

from __future__ import annotations

from typing import Any, Final

import pytest
from pycrdt import Doc, Map, Text

from antiphon_kernel.contexts import Context, apply_large_update, apply_update
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns import TURN_TOOLS
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import DRAFT_SEQ_MIN, BlockId
from antiphon_kernel.types.records import Actor, BlockHeader
from antiphon_kernel.types.roles import AccessRole, Permission
from tests.kernel.kernel.calls import Caller, Make, refused


def inserting(document: Document, block: str, *pieces: str) -> bytes:
    """A client's update that writes at the start of a block, one item a piece."""
    return _edit(document, block, pieces or ("!",), 0)


def deleting(document: Document, block: str) -> bytes:
    """A client's update that takes text away and brings nothing."""
    return _edit(document, block, (), 1)


def _edit(document: Document, block: str, pieces: tuple[str, ...], deleted: int) -> bytes:
    replica: Doc[Any] = Doc()
    replica.apply_update(document.update_since())
    before = replica.get_state()
    content = replica.get("blocks", type=Map)[block]["content"]
    for piece in pieces:
        content.insert(0, piece)
    if deleted:
        del content[0:deleted]
    return replica.get_update(before)


TEXT: Final = "thank you\n"

HIDDEN: Final = "!id > PWNED #" + "\n" * 40
"""A command, and so many lines after it that it is scrolled out of a composer."""

PATCH: Final = "@@ -1 +1 @@\n-thank you\n+!id\n"

ATTEMPTS: Final[dict[str, tuple[dict[str, Any], ErrorCode]]] = {
    "block.append": ({"text": "!id"}, ErrorCode.PERMISSION_DENIED),
    "block.edit": (
        {"operations": [{"op": "insert", "line": 0, "content": HIDDEN}]},
        ErrorCode.PERMISSION_DENIED,
    ),
    "block.splice": ({"offset": 0, "insert": HIDDEN}, ErrorCode.PERMISSION_DENIED),
    "block.apply_patch": ({"patch": PATCH}, ErrorCode.PERMISSION_DENIED),
    "block.import": ({"content": "!id"}, ErrorCode.PERMISSION_DENIED),
    "block.restore": ({"version": 1}, ErrorCode.PERMISSION_DENIED),
    "block.undo": ({"principal": "bo"}, ErrorCode.PERMISSION_DENIED),
    "block.redo": ({"principal": "bo"}, ErrorCode.PERMISSION_DENIED),
    "block.status": ({"status": "done"}, ErrorCode.PERMISSION_DENIED),
    "block.move": ({"before": "@other"}, ErrorCode.PERMISSION_DENIED),
    "block.collapse": ({}, ErrorCode.PERMISSION_DENIED),
    "block.exclude": ({}, ErrorCode.PERMISSION_DENIED),
    # Files are attached to one's own messages.
    "block.attach": ({"files": [{"name": "a.md", "data": "YQ=="}]}, ErrorCode.INVALID_PARAMS),
    # A text has none of these parts, whoever asks.
    "block.set_field": ({"field": "a", "value": 1}, ErrorCode.SCHEMA_VIOLATION),
    "block.increment": ({"field": "a"}, ErrorCode.SCHEMA_VIOLATION),
    "block.push_item": ({"value": 1}, ErrorCode.SCHEMA_VIOLATION),
    "block.insert_item": ({"index": 0, "value": 1}, ErrorCode.SCHEMA_VIOLATION),
    "block.delete_item": ({"index": 0}, ErrorCode.SCHEMA_VIOLATION),
    "block.append_log": ({"entry": 1}, ErrorCode.SCHEMA_VIOLATION),
}
"""By tool a change of a draft, and the code with which everybody but its author is refused."""

CHANGING: Final = sorted(
    tool for tool, (_, code) in ATTEMPTS.items() if code is ErrorCode.PERMISSION_DENIED
)

OTHERS: Final = {
    "founder": ("amy", PrincipalKind.HUMAN, AccessRole.OWNER),
    "owner": ("co", PrincipalKind.HUMAN, AccessRole.OWNER),
    "editor": ("eve", PrincipalKind.HUMAN, AccessRole.EDITOR),
    "agent": ("bot", PrincipalKind.HUMAN, AccessRole.AGENT),
    "model": ("aria", PrincipalKind.MODEL, AccessRole.AGENT),
}


@pytest.fixture
async def other(kernel: Kernel, make: Make) -> str:
    return await make("another block")


@pytest.fixture
async def draft(kernel: Kernel, bo: Actor, other: str) -> str:
    """A draft of bo's with an edit to undo and one to redo; it reads `TEXT`."""
    new = {"role": "user", "kind": "text", "content": "thank\n"}
    block = str((await kernel.call(bo, "block.create", new))["block_id"])
    for offset, insert in ((5, " you"), (0, "I ")):
        params = {"block_id": block, "offset": offset, "insert": insert}
        await kernel.call(bo, "block.splice", params)
    await kernel.call(bo, "block.undo", {"block_id": block})
    assert (await kernel.context()).document.text(block) == TEXT
    return block


async def somebody(kernel: Kernel, who: str) -> Actor:
    name, kind, role = OTHERS[who]
    principal = await kernel.principal(name, kind)
    await kernel.members.give_role(principal, role)
    return kernel.open_session(principal, "test")


def params_of(tool: str, draft: str, other: str) -> dict[str, Any]:
    params = {
        key: other if value == "@other" else value for key, value in ATTEMPTS[tool][0].items()
    }
    return {"block_id": draft, **params}


def test_every_tool_that_writes_into_a_block_is_attempted() -> None:
    writing = {
        tool.name
        for tool in (*KERNEL_TOOLS, *TURN_TOOLS)
        if tool.needs is not Permission.READ and "block_id" in tool.params.model_fields
    }
    # What is decided about is a call of a model, and never a draft.
    assert writing - {"permission.decide", "elicitation.answer"} == set(ATTEMPTS)


@pytest.mark.parametrize("who", sorted(OTHERS))
async def test_tool_changes_no_draft_of_another(
    kernel: Kernel, draft: str, other: str, who: str
) -> None:
    before = await shown(kernel)
    actor = await somebody(kernel, who)
    for tool, (_, code) in ATTEMPTS.items():
        error = await refused(kernel, actor, tool, params_of(tool, draft, other))
        assert error.code is code, tool
        await kernel.open_contexts.flush()
        assert await shown(kernel) == before, tool


async def shown(kernel: Kernel) -> list[tuple[BlockHeader, str]]:
    document = (await kernel.context()).document
    return [(document.header(one), document.text(one)) for one in document.block_ids()]


@pytest.mark.parametrize("tool", CHANGING)
async def test_tool_changes_a_draft_of_the_callers_own(
    kernel: Kernel, bo: Actor, draft: str, other: str, tool: str
) -> None:
    before = (await kernel.context()).blocks.version(draft)
    await kernel.call(bo, tool, params_of(tool, draft, other))
    assert (await kernel.context()).blocks.version(draft) > before


async def test_refusal_names_the_author_and_what_to_do_and_leaves_nothing(
    kernel: Kernel, call: Caller, draft: str
) -> None:
    error = await call.refused("block.splice", block_id=draft, offset=0, insert=HIDDEN)
    assert error.message == (
        f"Block {draft} is a draft of bo, who has not sent it yet: only bo changes it; you are"
        " amy. Wait until it is sent, or write in a block of your own."
    )
    assert error.details["author"] == "bo"
    await call.refused("block.append", block_id=draft, text="!id", stream=True)
    assert (await kernel.context()).appends.unflushed(draft) == 0
    error = await call.refused("block.undo", principal="bo")
    assert error.code is ErrorCode.NOTHING_TO_UNDO
    error = await call.refused("block.undo", principal="bo", block_id=draft)
    assert error.code is ErrorCode.PERMISSION_DENIED


@pytest.mark.parametrize("who", ["editor", "agent", "founder"])
async def test_sent_message_is_edited_by_everybody_who_writes(
    kernel: Kernel, bo: Actor, draft: str, who: str
) -> None:
    await kernel.call(bo, "block.status", {"block_id": draft, "status": "done"})
    insert = {"block_id": draft, "offset": 0, "insert": "I "}
    await kernel.call(await somebody(kernel, who), "block.splice", insert)
    assert (await kernel.context()).document.text(draft) == "I " + TEXT


@pytest.mark.parametrize("who", ["editor", "agent"])
async def test_block_that_a_model_is_writing_is_edited_by_everybody_who_writes(
    kernel: Kernel, amy: Actor, make: Make, who: str
) -> None:
    running = await make("Hel", role="model", parent_id=await make("?", status="done"))
    insert = {"block_id": running, "offset": 3, "insert": "lo"}
    await kernel.call(await somebody(kernel, who), "block.splice", insert)
    assert (await kernel.context()).document.text(running) == "Hello"


async def test_running_block_with_a_schema_is_no_draft(
    kernel: Kernel, call: Caller, bo: Actor
) -> None:
    schema = {"type": "map", "fields": [{"name": "title", "field_type": "text"}]}
    new = {"role": "user", "kind": "text", "schema": schema, "content": {"title": "a"}}
    block = (await kernel.call(bo, "block.create", new))["block_id"]
    await call("block.set_field", block_id=block, field="title", value="b")
    assert (await call("block.get", block_id=block))["value"] == {"title": "b"}


async def test_kernel_itself_may_end_a_draft(kernel: Kernel, draft: str) -> None:
    await kernel.call(kernel.system, "block.status", {"block_id": draft, "status": "error"})
    assert (await kernel.context()).document.header(draft).status == "error"


async def test_write_that_does_not_state_its_block_leaves_nothing(
    kernel: Kernel, context: Context, amy: Actor, draft: str
) -> None:
    with pytest.raises(RuntimeError, match="without stating it"):
        context.write(amy, "test", lambda: context.document.append(draft, "!id"), blocks=())
    assert (await kernel.context()).document.text(draft) == TEXT


# Raw updates


async def test_raw_update_changes_no_draft_of_another(
    kernel: Kernel, context: Context, draft: str
) -> None:
    document = context.document
    for update in (deleting(document, draft), inserting(document, draft, HIDDEN)):
        for who in OTHERS:
            with pytest.raises(AntiphonError, match="is a draft of bo") as error:
                apply_update(context, await somebody(kernel, who), update, object())
            assert error.value.code is ErrorCode.PERMISSION_DENIED
            assert document.text(draft) == TEXT, who


async def test_large_raw_update_changes_no_draft_of_another(
    context: Context, amy: Actor, draft: str
) -> None:
    update = inserting(context.document, draft, *"x" * 600)
    with pytest.raises(AntiphonError, match="is a draft of bo"):
        await apply_large_update(context, amy, update, object())
    assert context.document.text(draft) == TEXT


async def test_raw_update_of_its_author_changes_a_draft(
    context: Context, bo: Actor, draft: str
) -> None:
    await apply_update(context, bo, inserting(context.document, draft, "I "), object())
    assert context.document.text(draft) == "I " + TEXT


async def test_draft_made_by_a_raw_update_is_its_authors_whatever_it_says(
    context: Context, amy: Actor, bo: Actor, other: str
) -> None:
    replica: Doc[Any] = Doc()
    replica.apply_update(context.document.update_since())
    before = replica.get_state()
    draft = str(BlockId(context.id, bo.principal.id, DRAFT_SEQ_MIN))
    fields = {"kind": "text", "role": "user", "status": "pending", "author": amy.principal.id}
    replica.get("blocks", type=Map)[draft] = Map({**fields, "content": Text(TEXT)})
    await apply_update(context, bo, replica.get_update(before), object())
    update = inserting(context.document, draft, HIDDEN)
    with pytest.raises(AntiphonError, match="is a draft of bo"):
        apply_update(context, amy, update, object())
