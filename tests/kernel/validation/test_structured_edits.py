"""A raw update writes into texts: any other part of a structured block is for tools."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import pytest
from pycrdt import Array, Map, Text

from antiphon_kernel.contexts import Context, apply_update
from antiphon_kernel.document.content import read_content
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller
from tests.kernel.validation.peers import Peer, changed, refused, value
from tests.waiting import PATIENCE

Change = Callable[[Any], None]
"""Change of a client to the content of a block of the schema `peers.SCHEMA`."""

INSERT: Final = "call block.push_item or block.insert_item."
DELETE: Final = "call block.delete_item."
APPEND: Final = "call block.append_log."
SET: Final = "call block.set_field."
COUNT: Final = "call block.increment."
WHOLE: Final = "call block.import."


def _in_list(name: str, path: str, tools: tuple[str, str]) -> dict[str, tuple[Change, str]]:
    def array(content: Any) -> Any:
        for one in path.split("/"):
            content = content[one]
        return content

    def delete(content: Any) -> None:
        del array(content)[0]

    def replace(content: Any) -> None:
        array(content)[0] = 7.0

    def move(content: Any) -> None:
        delete(content)
        array(content).append(1.0)

    def take_back(content: Any) -> None:
        array(content).append(7.0)
        del array(content)[len(array(content)) - 1]

    insert, remove = tools
    return {
        f"insert into {name}": (lambda content: array(content).insert(0, 7.0), insert),
        f"append to {name}": (lambda content: array(content).append(7.0), insert),
        f"delete from {name}": (delete, remove),
        f"replace in {name}": (replace, insert),
        f"move in {name}": (move, insert),
        f"append to {name} and take back": (take_back, insert),
    }


def _in_map(
    name: str, path: str, key: Callable[[Any], str], tool: str
) -> dict[str, tuple[Change, str]]:
    def values(content: Any) -> Any:
        for one in path.split("/"):
            content = content[one]
        return content

    def overwrite(content: Any) -> None:
        values(content)[key(values(content))] = "7"

    def add(content: Any) -> None:
        values(content)["added"] = "7"

    def delete(content: Any) -> None:
        del values(content)[key(values(content))]

    def both(content: Any) -> None:
        overwrite(content)
        delete(content)

    return {
        f"add to {name}": (add, tool),
        f"overwrite in {name}": (overwrite, tool),
        f"delete from {name}": (delete, tool),
        f"overwrite and delete in {name}": (both, tool),
    }


def _container(
    name: str, parent: str, key: str, kind: type[Any], tool: str
) -> dict[str, tuple[Change, str]]:
    def held(content: Any) -> Any:
        return content[parent] if parent else content

    def overwrite(content: Any) -> None:
        held(content)[key] = kind()

    def overwrite_by_a_value(content: Any) -> None:
        held(content)[key] = 7.0

    def delete(content: Any) -> None:
        del held(content)[key]

    return {
        f"overwrite {name}": (overwrite, tool),
        f"overwrite {name} by a value": (overwrite_by_a_value, tool),
        f"delete {name}": (delete, tool),
    }


def _add_section(content: Any) -> None:
    content["more"] = Text()


def _text_and_list(content: Any) -> None:
    content["state"]["title"].insert(0, "typed")
    content["things"].append(7.0)


EDITS: Final[dict[str, tuple[Change, str]]] = {
    **_in_list("list", "things", (INSERT, DELETE)),
    **_in_list("list field", "state/few", (INSERT, DELETE)),
    **_in_list("log", "log", (APPEND, APPEND)),
    **_in_map("map", "state", lambda _: "must", SET),
    **_in_map("counter", "state/count", lambda sums: str(next(iter(sums))), COUNT),
    **_container("list field", "state", "few", Array, SET),
    **_container("counter", "state", "count", Map, SET),
    **_container("text field", "state", "title", Text, SET),
    **_container("list", "", "things", Array, WHOLE),
    **_container("log", "", "log", Array, WHOLE),
    **_container("map", "", "state", Map, WHOLE),
    **_container("text section", "", "notes", Text, WHOLE),
    "add to composite": (_add_section, WHOLE),
    "shared type in list": (lambda content: content["things"].append(Map()), INSERT),
    "text and list": (_text_and_list, INSERT),
}
"""By name what a client does, and what the error says is to be done instead."""


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
    before = read_content(context.document, block).value
    updates = await stock_updates(modules, context, block, (*expected, *OF_TEXTS))
    for edit, tools in expected.items():
        await refused_for_tools(context, bo, updates[edit], tools)
    for edit in OF_TEXTS:
        await apply_update(context, bo, updates[edit], "client")
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
