"""Authors of an import: known by name, members only once somebody lets them in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.access import AuthenticationError
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.kernel.calls import Caller, Make, OpenKernel


@pytest.fixture
async def exported(kernel: Kernel, call: Caller, bo: Actor, aria: Actor, make: Make) -> str:
    """The context of another kernel, in which a person and a model have written."""
    block = await make("one ")
    await kernel.call(bo, "block.append", {"block_id": block, "text": "two"})
    answer = {"kind": "text", "parent_id": block, "content": "three"}
    await kernel.call(aria, "block.create", answer)
    return str((await call("context.export"))["text"])


@pytest.fixture
async def other(tmp_path: Path) -> Any:
    folder = tmp_path / "other"
    kernel = await Kernel.open(folder, folder, registry=Registry(KERNEL_TOOLS), owner="zoe")
    yield kernel
    await kernel.close()


async def roles(kernel: Kernel) -> dict[str, str]:
    caller = Caller(kernel, kernel.open_session(kernel.owner, "test"))
    return {one["username"]: one["role"] for one in (await caller("kernel.members"))["members"]}


async def test_import_makes_authors_and_no_members(other: Kernel, exported: str) -> None:
    zoe = other.open_session(other.owner, "test")
    before = await roles(other)
    await other.call(zoe, "context.import", {"text": exported, "label": "copy"})
    after = await roles(other)
    assert {name: after[name] for name in before} == before
    new = {name: role for name, role in after.items() if name not in before}
    assert new == dict.fromkeys(("amy", "bo", "aria"), "author")
    for name in new:
        with pytest.raises(AuthenticationError, match="author only"):
            other.access.check_admission(other.members[name])


@pytest.mark.parametrize("kind", ["system", "source"])
async def test_import_makes_no_source_and_no_system(
    other: Kernel, exported: str, kind: str
) -> None:
    zoe = other.open_session(other.owner, "test")
    lines = [json.loads(line) for line in exported.splitlines()]
    for line in lines:
        if line.get("username") == "bo":
            line["kind"] = kind
    text = "\n".join(map(json.dumps, lines))
    with pytest.raises(AntiphonError, match="bo"):
        await other.call(zoe, "context.import", {"text": text, "label": "copy"})
    kinds = {one.kind for one in other.members}
    assert kinds <= {PrincipalKind.HUMAN, PrincipalKind.MODEL, PrincipalKind.SYSTEM}
    assert "bo" not in other.members


@pytest.mark.parametrize("role", ["viewer", "editor"])
async def test_author_who_is_invited_has_the_role_of_the_invitation(
    other: Kernel, exported: str, role: str
) -> None:
    zoe = other.open_session(other.owner, "test")
    await other.call(zoe, "context.import", {"text": exported, "label": "copy"})
    await other.call(zoe, "kernel.invite", {"role": role, "name": "bo"})
    assert (await roles(other))["bo"] == role
    other.access.check_admission(other.members["bo"])


async def test_author_is_one_after_a_restart_until_the_owner_acts_as_them(
    kernel: Kernel, call: Caller, exported: str, open_kernel: OpenKernel
) -> None:
    text = exported.replace('"aria"', '"nova"').replace('"bo"', '"carl"')
    await call("context.import", text=text, label="copy")
    await kernel.close()
    again = await open_kernel()
    assert again.members.role_of(again.members["nova"]) is AccessRole.AUTHOR
    for name, role in (("nova", AccessRole.AGENT), ("carl", AccessRole.EDITOR)):
        assert again.members.role_of(await again.principal(name)) is role
