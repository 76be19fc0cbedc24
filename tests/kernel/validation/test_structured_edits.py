"""A raw update writes into texts: any other part of a structured block is for tools."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.document.content import read_content
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller
from tests.kernel.validation.peers import Peer, changed, refused, value
from tests.kernel.validation.structured_edits import EDITS, Change
from tests.waiting import PATIENCE

SCRIPT = Path(__file__).with_name("stock_edits.mjs")
OF_TEXTS = ("type", "type in a section", "delete text", "undo typing", "bold")


async def stock_updates(
    modules: Path, context: Context, block: str, edits: Iterable[str]
) -> dict[str, bytes]:
    """The updates of stock Yjs clients that know everything, one client an edit."""
    state = base64.b64encode(context.document.update_since()).decode()
    request = {"state": state, "block": block, "client": 4711, "edits": list(edits)}
    process = await asyncio.create_subprocess_exec(
        *("node", str(SCRIPT), str(modules)), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    answer, _ = await asyncio.wait_for(process.communicate(json.dumps(request).encode()), PATIENCE)
    assert process.returncode == 0
    return {name: base64.b64decode(update) for name, update in json.loads(answer).items()}


async def refused_for_tools(context: Context, actor: Actor, update: bytes, tools: str) -> None:
    error = await refused(context, actor, update, ErrorCode.PERMISSION_DENIED)
    assert error.message.endswith(tools), error.message


def type_into(field: str, text: str) -> Change:
    return lambda content: content["state"][field].insert(0, text)


@pytest.mark.parametrize("keeps", [False, True])
async def test_edits_of_structured_parts_are_refused_whole_and_name_the_tool(
    context: Context, amy: Actor, bo: Actor, block: str, keeps: bool
) -> None:
    """`keeps`: whether the client remembers what was deleted."""
    for number, (change, tools) in enumerate(EDITS.values()):
        client, other = Peer(context, 100 + number, keeps=keeps), Peer(context, 200 + number)
        client.content(block)["state"]["title"].insert(0, "b")
        await apply_update(context, bo, client.update(), "client")
        with client.doc.transaction():
            change(client.content(block))
        await refused_for_tools(context, bo, client.update(), tools)
        other.content(block)["notes"].insert(0, "o")
        await apply_update(context, amy, other.update(), "other")
        update = changed(context, block, type_into("title", "a"), 300 + number)
        await apply_update(context, bo, update, "client")
    assert value(context, block, "state/title") == "ab" * len(EDITS)
    assert value(context, block, "notes") == "o" * len(EDITS) + "a note"


async def test_edits_of_structured_parts_by_a_stock_client_are_refused_whole_and_name_the_tool(
    modules: Path, context: Context, bo: Actor, block: str
) -> None:
    expected = {edit: tools for edit, (_, tools) in EDITS.items()}
    expected["attribute of text"] = "call block.edit."
    expected["embed"] = "a text takes characters and format marks."
    for edit, update in (await stock_updates(modules, context, block, expected)).items():
        await refused_for_tools(context, bo, update, expected[edit])
    await apply_update(context, bo, changed(context, block, type_into("title", "after")), "client")


async def test_edits_of_texts_by_a_stock_client_are_taken(
    modules: Path, context: Context, bo: Actor, block: str
) -> None:
    before = read_content(context.document, block).value
    for update in (await stock_updates(modules, context, block, OF_TEXTS)).values():
        await apply_update(context, bo, update, "client")
    found = read_content(context.document, block)
    assert not found.violations
    assert found.value["state"].pop("title") == "typed 😀bold "
    assert found.value.pop("notes") == "typed" + before["notes"][1:]
    assert found.value == {
        **{name: one for name, one in before.items() if name != "notes"},
        "state": {name: one for name, one in before["state"].items() if name != "title"},
    }


async def test_repeated_deletion_in_a_list_changes_nothing(
    call: Caller, context: Context, bo: Actor, block: str
) -> None:
    """A client that joins sends the deletions that it has been told of."""
    await call("block.delete_item", block_id=block, section="things", index=0)
    peer, seq = Peer(context), context.seq
    await apply_update(context, bo, peer.doc.get_update(), "client")
    assert context.seq == seq
