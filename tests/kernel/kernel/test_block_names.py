"""Answers name blocks and authors as people do, and requests take no more than they should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.subscriptions import attribution
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Caller, Make


async def test_every_answer_with_a_block_id_has_its_name(
    kernel: Kernel, call: Caller, bo: Actor
) -> None:
    await kernel.create_context("other")
    request = {"context": "other", "role": "user", "kind": "text", "content": "needle"}
    made = await kernel.call(bo, "block.create", {**request, "status": "done"})
    block, name = made["block_id"], "other.bo.1"
    answers: list[dict[str, Any]] = [made]
    for tool in ("block.read", "block.get", "block.render", "block.export"):
        answers.append(await call(tool, block_id=name))
    answers += (await call("block.list", context="other"))["blocks"]
    found = await call("kernel.search", query="needle", kinds=["text"])
    answers += found["results"]
    (event,) = (await call("block.sync", context="other"))["new_blocks"]
    answers += [event, event["header"]]
    await call("block.splice", block_id=block, offset=0, insert="x")
    answers += (await call("block.sync", context="other", versions={block: 1}))["patches"]
    assert [(one["block_id"], one["name"]) for one in answers] == [(block, name)] * len(answers)


async def test_every_author_has_a_username(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make
) -> None:
    await make("first", status="done")
    subscription = await kernel.call(amy, "block.subscribe", {})
    made = await kernel.call(bo, "block.create", {"role": "user", "kind": "text", "content": "x"})
    listed = (await kernel.call(amy, "block.list", {}))["blocks"]
    assert [one["username"] for one in listed] == ["amy", "bo"]
    read = await kernel.call(amy, "block.read", {"block_id": made["block_id"]})
    assert (read["author"], read["username"]) == (bo.principal.id, "bo")
    followed = kernel.subscriptions.find(amy, subscription["subscription"])
    event = await anext(aiter(followed))
    assert (event.principal, event.username, event.name) == (bo.principal.id, "bo", "default.bo.1")
    assert event.header is not None and event.header.username == "bo"


async def test_the_input_of_a_tool_call_is_an_object_both_ways(call: Caller, make: Make) -> None:
    given = {"pattern": "x", "deep": [1, {"none": None}]}
    block = await make("call", kind="tool_call", metadata={"input": given})
    read = await call("block.read", block_id=block)
    assert read["input"] == given
    (listed,) = (await call("block.list"))["blocks"]
    assert listed["input"] == given


async def test_metadata_with_the_name_of_a_header_field_is_refused(call: Caller) -> None:
    for name in ("kind", "role", "status", "order", "created", "author", "parent", "metadata"):
        error = await call.refused("block.create", role="user", kind="text", metadata={name: "x"})
        found = error.code, error.details["field"]
        assert found == (ErrorCode.INVALID_PARAMS, f"metadata.{name}")


async def test_a_path_that_leaves_the_project_is_refused(
    kernel: Kernel, call: Caller, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    kernel.project = tmp_path / "inside"
    kernel.project.mkdir()
    (kernel.project / "out").symlink_to(outside)
    file = {"role": "user", "kind": "file"}
    for path in ("../x", "a/../../x", "/etc/passwd", "..", "out/secret", "out"):
        error = await call.refused("block.create", **file, metadata={"path": path})
        assert (error.code, error.details["field"]) == (ErrorCode.INVALID_PARAMS, "metadata.path")
    for fine in ("x", "a/../x", "..x", "a b/c"):
        await call("block.create", **file, metadata={"path": fine})


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (PrincipalKind.HUMAN, "agent:p1:edit"),
        (PrincipalKind.MODEL, "agent:p1:edit"),
        (PrincipalKind.SHELL, "agent:p1:edit"),
        ("something newer", "agent:p1:edit"),
        (PrincipalKind.SOURCE, "source:p1:update"),
        (PrincipalKind.SYSTEM, "system:edit"),
        ("system", "system:edit"),
    ],
)
def test_change_is_attributed_by_the_kind_of_its_author(
    kind: PrincipalKind | str, expected: str
) -> None:
    assert attribution("p1", kind, "edit") == expected
