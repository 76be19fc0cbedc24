"""A data folder in which there is something of everything."""

from __future__ import annotations

import asyncio
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.records import BlockHeader
from tests.clocks import ManualClock


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with such a folder, which tests copy."""
    folder = tmp_path_factory.mktemp("template")
    asyncio.run(_fill(folder))
    return folder


@pytest.fixture
def sound(template: Path, data: Path) -> Path:
    """A folder with a prompt, an answer with a tool call and its result, undone edits and more."""
    shutil.copytree(template, data.parent, dirs_exist_ok=True)
    return data


async def _fill(folder: Path) -> None:
    kernel = await Kernel.open(
        folder / "data",
        folder,
        registry=Registry(KERNEL_TOOLS),
        owner="amy",
        clock=ManualClock(),
    )
    context = await kernel.context()
    amy = kernel.open_session(kernel.owner, "test")
    aria = kernel.open_session(await kernel.principal("aria", PrincipalKind.MODEL), "turn")

    async def make(actor: Any, **fields: Any) -> str:
        request = {"kind": "text", "content": "text 😀\n", "status": "done", **fields}
        return str((await kernel.call(actor, "block.create", request))["block_id"])

    prompt = await make(amy, role="user")
    call = str(context.next_block_id(aria.principal.id))
    for block, kind, parent in (
        (call, BlockKind.TOOL_CALL, prompt),
        (str(context.next_block_id(aria.principal.id)), BlockKind.TOOL_RESULT, call),
    ):
        header = BlockHeader(
            block,
            kind,
            Role.TOOL,
            Status.DONE,
            order=f"b{kind}",
            created=iso_time(kernel.clock.now_ms()),
            author=aria.principal.id,
            parent=parent,
            tool_kind="shell",
            tool_call_id="t1",
        )
        await context.write(
            aria, "create", partial(context.document.create_block, header, "ls"), blocks=()
        ).saved()
    for number in range(110):
        insert = {"block_id": prompt, "offset": 0, "insert": f"{number} "}
        await kernel.call(amy, "block.splice", insert)
    await kernel.call(amy, "block.undo", {"block_id": prompt})
    deletion = {"op": "delete", "start_line": 0, "end_line": 1}
    await kernel.call(amy, "block.edit", {"block_id": prompt, "operations": [deletion]})
    await kernel.call(amy, "block.undo", {"block_id": prompt})
    await kernel.create_context("other")
    await kernel.call(amy, "context.fork", {"context": "default", "label": "copy"})
    exported = await kernel.call(amy, "context.export", {"context": "default"})
    await kernel.call(amy, "context.import", {"text": exported["text"], "label": "imported"})
    await kernel.call(amy, "kernel.invite", {"role": "viewer", "uses": 1})
    await kernel.call(amy, "kernel.search", {"query": "text"})
    await kernel.search.wait_indexed()
    await kernel.call(amy, "file.create", {"path": "list.txt", "content": "milk\n"})
    await kernel.close()
