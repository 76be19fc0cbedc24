"""What stock Yjs writes: honest edits of structured blocks are taken, the others refused."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from pathlib import Path

import pytest

from antiphon_kernel.document.content import read_content
from antiphon_kernel.kernel.context.context import Context
from antiphon_kernel.kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.admission.peers import refused, value

SCRIPT = Path(__file__).with_name("stock_edits.mjs")

HONEST = (
    "push",
    "insertAtTheEnd",
    "pushAndTakeBack",
    "overwrite",
    "overwriteAtOnce",
    "count",
    "removeOptional",
    "fill",
    "replaceList",
    "undoTyping",
    "bold",
)
BY_SCHEMA = (
    "insertAtTheFront",
    "insertBeforeTheLast",
    "deleteEntry",
    "overfill",
    "infinity",
    "notANumber",
    "undefinedInside",
    "bigInt",
    "bytesInside",
    "empty",
    "setToNull",
    "othersSum",
    "unknown",
)
OTHERWISE = ("bytes", "embed", "otherType")


async def edited(
    modules: Path, context: Context, block: str, *edits: str, client: int = 4711
) -> bytes:
    """The update of a stock client that knows everything."""
    state = base64.b64encode(context.document.update_since()).decode()
    request = {"state": state, "block": block, "client": client, "edits": edits}
    process = await asyncio.create_subprocess_exec(
        *("node", str(SCRIPT), str(modules)), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    answer, _ = await asyncio.wait_for(process.communicate(json.dumps(request).encode()), 30)
    assert process.returncode == 0
    return base64.b64decode(answer)


async def test_honest_edits_are_taken(
    modules: Path, kernel: Kernel, context: Context, amy: Actor, bo: Actor, block: str
) -> None:
    for client, edit in enumerate(HONEST, 4711):
        if edit == "insertAtTheEnd":
            # There is something behind the end, which such a client names.
            entry = {"block_id": block, "section": "log", "entry": "undone"}
            await kernel.call(amy, "block.append_log", entry)
            await kernel.call(amy, "block.undo", {"block_id": block})
        update = await edited(modules, context, block, edit, client=client)
        await context.remote.apply(bo, update, "client")
        assert not read_content(context.document, block).violations, edit
    log = ["first", "second", "pushed", "inserted", "said"]
    assert value(context, block, "log") == log
    state = value(context, block, "state")
    assert (state["must"], state["count"], state["few"]) == (3, 7, [7, 8, 9])
    assert state["title"] == "boldtyped 😀"


@pytest.mark.parametrize("edit", [*BY_SCHEMA, *OTHERWISE])
async def test_what_a_schema_forbids_is_refused(
    modules: Path, context: Context, bo: Actor, block: str, edit: str
) -> None:
    error = await refused(context, bo, await edited(modules, context, block, "push", edit))
    expected = ErrorCode.SCHEMA_VIOLATION if edit in BY_SCHEMA else ErrorCode.PERMISSION_DENIED
    assert error.code is expected
