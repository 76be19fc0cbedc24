"""Drifts from files and to files, and who may make them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.tools.drift import resume_drifts
from antiphon_kernel.turns.distilling import distill
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.drift.staging import content, listed, staged
from tests.kernel.files.editor import Editor
from tests.kernel.kernel.calls import Caller, Make, refused

SECRET: Final = "SECRET=1\n"


@pytest.fixture
async def notes(call: Caller) -> Context:
    await call("context.create", label="notes")
    return await call.context("notes")


@pytest.fixture
async def secret(kernel: Kernel, editor: Editor, aria: Actor) -> Context:
    """A file that is open, and of which aria sees nothing."""
    editor.put(".env", SECRET.encode())
    kernel.files.is_denied = lambda who, path: who == aria.principal and path == ".env"
    return (await editor.open(".env")).context


async def test_nothing_drifts_into_a_file(
    call: Caller, editor: Editor, make: Make, notes: Context
) -> None:
    editor.put("a.txt", b"text\n")
    file = await editor.open("a.txt")
    label, block = file.context.label, await make("x", role="user", status="done")
    other = await make("y", role="user", status="done", context="notes")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("drift.push", {"to": label, "blocks": [block]}),
        ("drift.pull", {"source": "notes", "blocks": [other], "context": label}),
        ("drift.merge", {"source": label}),
        ("drift.merge", {"source": "notes", "target": label}),
        ("drift.preview", {"source": label, "target": "notes"}),
    ]
    for tool, params in calls:
        error = await call.refused(tool, **params)
        assert error.code is ErrorCode.INVALID_PARAMS, tool
    assert [text for _, _, text in content(file.context)] == ["text\n"]


async def test_text_of_a_file_drifts_with_those_who_wrote_it(
    call: Caller, editor: Editor, notes: Context
) -> None:
    editor.put("a.txt", b"text\n")
    await editor.insert("a.txt", 4, " of amy")
    pushed = await call("drift.push", to="notes", blocks=["file:a.txt"])
    assert [text for _, _, text in content(notes)] == ["", "text of amy\n"]
    runs = (await call("block.blame", block_id=pushed["blocks"][0]))["runs"]
    assert [one["username"] for one in runs] == ["disk", "amy", "disk"]


async def test_secret_file_is_pushed_by_nobody_who_must_not_see_it(
    kernel: Kernel, call: Caller, aria: Actor, bo: Actor, secret: Context, notes: Context
) -> None:
    (block,) = secret.document.block_ids()
    for actor, params in (
        (aria, {"blocks": ["file:.env"]}),
        (aria, {"blocks": [block]}),
        (aria, {"context": secret.label}),
    ):
        error = await refused(kernel, actor, "drift.push", {"to": "notes", **params})
        assert error.code is ErrorCode.PERMISSION_DENIED, params
        assert "SECRET" not in str(error.as_json())
    for source in (secret.label, secret.id):
        error = await refused(kernel, aria, "drift.pull", {"source": source, "context": "notes"})
        assert error.code is ErrorCode.PERMISSION_DENIED
    editor_error = await refused(kernel, bo, "drift.push", {"to": "notes", "blocks": ["file:b"]})
    assert editor_error.code is ErrorCode.PERMISSION_DENIED  # not open: by path for owners only
    assert content(notes) == [] and (await call("drift.list"))["drifts"] == []


async def test_file_that_has_become_secret_is_not_delivered(
    kernel: Kernel, editor: Editor, aria: Actor, notes: Context
) -> None:
    editor.put("a.txt", SECRET.encode())
    file = await editor.open("a.txt")
    program = Caller(kernel, kernel.open_session(aria.principal, "unix"))
    drift_id = await staged(program, to="notes", blocks=[file.block])
    kernel.files.is_denied = lambda who, path: who == aria.principal and path == "a.txt"
    await resume_drifts(kernel)
    found = await listed(kernel, drift_id)
    assert found["state"] == "refused" and "secrets" in found["outcome"]
    assert content(notes) == []


async def test_summary_of_a_file_is_written_beside_it_only(
    kernel: Kernel, amy: Actor, editor: Editor, notes: Context
) -> None:
    editor.put("a.txt", b"some text\n")
    file = (await editor.open("a.txt")).context

    async def summed_up(**params: Any) -> Any:
        return await distill.handler(kernel.start_call(amy, distill), distill.parse(params))

    with pytest.raises(AntiphonError) as caught:
        await summed_up(source=file.label, context=file.label)
    assert caught.value.code is ErrorCode.INVALID_PARAMS
    assert [text for _, _, text in content(file)] == ["some text\n"]
    await summed_up(source=file.label, context="notes")
    assert [kind for _, kind, _ in content(notes)] == ["drift"]
