"""A large update comes in by parts: the same as at once, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from pycrdt import Text

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.types.enums import Status
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import Make
from tests.kernel.validation.peers import Offline, take_in


@pytest.mark.sqlite
async def test_parts_do_what_the_whole_would(
    kernel: Kernel, context: Context, bo: Actor, make: Make, data: Path
) -> None:
    there = await make("there before 😀 " * 50, status="done")
    offline = Offline(context, bo, 0)
    for _ in range(2):
        draft = offline.draft()
        offline.write(draft, 300)
        offline.write(there, 700)
        offline.submit(draft)
    offline.write(offline.draft(), 1_200)
    update = offline.update()
    before = context.seq
    seq = await take_in(context, bo, update)
    assert seq == context.seq > before + 3
    document = context.document
    for block in (there, *offline.drafts):
        assert document.text(block) == str(offline.blocks[block]["content"])
    headers = [document.header(block) for block in offline.drafts]
    assert [header.language for header in headers] == ["de"] * 3
    assert [header.path for header in headers] == [None] * 3
    done = [header.id for header in headers if header.status is Status.DONE]
    assert done == offline.submitted
    assert await take_in(context, bo, update) == context.seq == seq
    await kernel.close()
    assert [str(finding) for finding in (await run_checks(data)).all()] == []


@pytest.mark.parametrize("wrong", ["header", "content", "gap", "deletion", "list"])
async def test_large_update_is_refused_whole(
    context: Context, bo: Actor, make: Make, wrong: str
) -> None:
    there = await make("there before 😀", status="done")
    structured = await make(schema={"type": "list"}, content=[1])
    offline = Offline(context, bo, 1)
    offline.write(there, 1_500)
    blocks = offline.blocks
    code = ErrorCode.PERMISSION_DENIED
    update = b""
    if wrong == "header":
        blocks[there]["role"] = "model"
    elif wrong == "deletion":
        del blocks[there]["language" if "language" in blocks[there] else "role"]
    elif wrong == "list":
        blocks[structured]["content"].append(2.0)
    elif wrong == "gap":
        blocks[there]["content"].insert(0, "skipped")
        lost = offline.doc.get_state()
        offline.write(there, 1_500)
        update, code = offline.doc.get_update(lost), ErrorCode.GAP
    else:
        draft = offline.draft()
        blocks[draft]["content"] = Text("another")
    before = context.document.state_vector()
    with raises(code):
        await take_in(context, bo, update or offline.update())
    assert context.document.state_vector() == before


async def test_small_update_is_one_transaction(context: Context, bo: Actor, make: Make) -> None:
    there = await make("there", status="done")
    offline = Offline(context, bo, 1)
    offline.write(there, 100)
    before = context.seq
    assert await take_in(context, bo, offline.update()) == before + 1
    assert context.document.text(there) == str(offline.blocks[there]["content"])
