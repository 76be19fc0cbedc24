"""Import of what is exported: the same texts, headers, order, parents and authors.

Authors are known by name, and are members only once somebody lets them in.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.access import AuthenticationError
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import Limits
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.errors import raises
from tests.kernel.kernel.calls import Caller, Make, OpenKernel


@pytest.fixture
async def written(kernel: Kernel, aria: Actor, call: Caller, bo: Actor, make: Any) -> str:
    """A conversation of two people and a model; the first block."""
    first = str(await make("one\n漢字 😀\nthree", status="done", metadata={"a": [1, "ü"]}))
    await kernel.call(bo, "block.splice", {"block_id": first, "offset": 4, "insert": "two "})
    answer = {"role": "model", "kind": "text", "content": "```\ncode\n```", "parent_id": first}
    await kernel.call(aria, "block.create", answer)
    await kernel.call(bo, "block.create", {"role": "user", "kind": "text", "content": "a draft"})
    between = {"role": "user", "kind": "text", "content": "in between", "after": first}
    await call("block.create", **between, status="done")
    return first


def told(text: str) -> list[dict[str, Any]]:
    """An export without what an import changes: ids of the context and of principals, versions."""
    lines = [json.loads(line) for line in text.splitlines()]
    names = {line["id"]: line["username"] for line in lines if line["type"] == "principal"}
    for line in lines:
        if line["type"] == "context":
            line |= {"context_id": "", "version": 0, "creator": ""}
        elif line["type"] == "principal":
            line["id"] = line["username"]
        elif line["type"] == "block":
            line["version"] = 0
            line["id"] = short(line["id"], names)
            line["header"]["author"] = names[line["header"]["author"]]
            if "parent" in line["header"]:
                line["header"]["parent"] = short(line["header"]["parent"], names)
            for run in line["authors"]:
                run["principal"] = names[run["principal"]]
    return sorted(lines, key=lambda line: line["type"] == "block")


def without_authors(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept = (line for line in lines if line["type"] != "principal")
    return [{name: value for name, value in line.items() if name != "authors"} for line in kept]


def short(block: str, names: dict[str, str]) -> str:
    _, principal, seq = block.split(".")
    return f"{names[principal]}.{seq}"


async def test_import_into_another_kernel_is_exported_as_the_same(
    call: Caller, written: str, tmp_path: Path
) -> None:
    exported = (await call("context.export"))["text"]
    folder = tmp_path / "other"
    other = await Kernel.open(folder, folder, registry=Registry(KERNEL_TOOLS), owner="zoe")
    zoe = other.open_session(other.owner, "test")
    made = await other.call(zoe, "context.import", {"text": exported, "label": "taken-over"})
    assert made["blocks"] == 4
    again = (await other.call(zoe, "context.export", {"context": "taken-over"}))["text"]
    before, after = told(exported), told(again)
    # A model that is not there leaves no block running.
    for line in before:
        header = line.get("header", {})
        if header.get("status") == "running" and header["role"] == "model":
            header |= {"status": "error", "stop_reason": "interrupted"}
    before, after = ([line | {"label": ""} for line in lines] for lines in (before, after))
    assert without_authors(after) == without_authors(before)
    bo = other.open_session(await other.principal("bo"), "test")
    with raises(ErrorCode.NOTHING_TO_UNDO):
        await other.call(bo, "block.undo", {"context": "taken-over"})
    fresh = {"role": "user", "kind": "text", "content": "new", "context": "taken-over"}
    await other.call(bo, "block.create", fresh)
    await other.close()
    assert [str(finding) for finding in (await run_checks(folder)).all()] == []


def less(line: str) -> str:
    return line.replace('"blocks": 4', '"blocks": 3')


BROKEN_OFF = '{"type": "error", "error": {"code": "storage_failed", "message": "No disk."}}'


DAMAGES: list[tuple[Callable[[list[str]], list[str]], str]] = [
    (lambda lines: lines[1:], "line of the context"),
    (lambda lines: [*lines, "{"], f"Line {10}"),
    (lambda lines: [lines[0].replace('"format": 2', '"format": 3'), *lines[1:]], "format 3"),
    (lambda lines: lines[:-1], "broken off"),
    (lambda lines: [one for one in lines if "a draft" not in one], "4 blocks, here are 3"),
    (lambda lines: [*lines[:-2], BROKEN_OFF], "Line 8"),
    (lambda lines: [one for one in lines if '"aria"' not in one], "principal"),
    (lambda lines: [less(one) for one in lines if ' "one\\n' not in one], "parent"),
    (lambda lines: [*lines[:-1], lines[-2], lines[-1]], "Line 9: Block"),
    (lambda lines: [re.sub(r'"parent": "[^"]*"', '"parent": {}', one) for one in lines], "{}"),
    (lambda lines: [one.replace('"end": 7', '"end": 6') for one in lines], "authors"),
    (lambda lines: [one.replace('"kind": "text"', '"kinds": 1') for one in lines], "kinds"),
]
"""Changes of the lines of an export, and words of the refusal."""


async def test_import_of_damaged_export_is_rejected_and_leaves_nothing(
    kernel: Kernel, call: Caller, written: str
) -> None:
    exported = (await call("context.export"))["text"]
    for damage, says in DAMAGES:
        text = "\n".join(damage(exported.splitlines()))
        assert text != exported.rstrip("\n")
        with raises(ErrorCode.INVALID_PARAMS) as caught:
            await call("context.import", text=text, label="copy")
        assert says in caught.value.message
        assert [row.label for row in kernel.contexts.rows()] == ["default"]
    await kernel.create_context("copy")


async def chain(kernel: Kernel, amy: Actor, length: int) -> list[dict[str, Any]]:
    """The lines of an export of blocks that answer one another; the shuffled ones are no worse."""
    await kernel.call(amy, "block.create", {"role": "user", "kind": "text", "content": "x"})
    exported = (await kernel.call(amy, "context.export", {}))["text"]
    *head, block, _ = map(json.loads, exported.splitlines())
    stem = block["id"].rpartition(".")[0]
    blocks = []
    for number in range(1, length + 1):
        above = {"parent": f"{stem}.{number - 1}"} if number > 1 else {}
        fields = {**block["header"], "order": f"a{number:05}", **above}
        blocks.append({**block, "id": f"{stem}.{number}", "header": fields})
    random.Random(length).shuffle(blocks)
    return [*head, *blocks, {"type": "end", "blocks": length}]


SHALLOW = Limits(parent_depth=16)


async def test_chain_of_parents_is_imported_if_a_tool_could_have_made_it(
    open_kernel: OpenKernel,
) -> None:
    kernel = await open_kernel(SHALLOW)
    amy = kernel.open_session(kernel.owner, "test")
    lines = await chain(kernel, amy, 16)
    params = {"text": "\n".join(map(json.dumps, lines)), "label": "long"}
    assert (await kernel.call(amy, "context.import", params))["blocks"] == 16
    document = (await kernel.context("long")).document
    assert document.reply_depth(document.block_ids()[-1], 1_000) == 16
    last = {"role": "user", "kind": "text", "parent_id": document.block_ids()[-1]}
    with pytest.raises(AntiphonError):
        await kernel.call(amy, "block.create", last)


@pytest.mark.parametrize("length", [1, 3, 17])
async def test_parents_in_a_circle_or_too_many_are_not_imported(
    open_kernel: OpenKernel, length: int
) -> None:
    kernel = await open_kernel(SHALLOW)
    amy = kernel.open_session(kernel.owner, "test")
    lines = await chain(kernel, amy, length)
    blocks = sorted((one for one in lines if one["type"] == "block"), key=number_of)
    if length < 16:
        blocks[0]["header"]["parent"] = blocks[-1]["id"]
    params = {"text": "\n".join(map(json.dumps, lines)), "label": "long"}
    with pytest.raises(AntiphonError, match="run in a circle, or are more than 15") as caught:
        await kernel.call(amy, "context.import", params)
    assert caught.value.code is ErrorCode.INVALID_PARAMS
    assert len(kernel.contexts.rows()) == 1


def number_of(block: dict[str, Any]) -> int:
    return int(block["id"].rpartition(".")[2])


async def test_markdown_shows_every_text_but_what_is_cut_out_under_who_wrote_it(
    call: Caller, written: str
) -> None:
    text = (await call("context.export", format="markdown"))["text"]
    document = (await call.context()).document
    at = 0
    for block in document.block_ids():
        at = text.index(document.text(block), at)
    assert [line.split(" ")[1] for line in text.splitlines() if line.startswith("## ")] == [
        "amy",
        "amy",
        "aria",
        "bo",
    ]
    first, second = document.block_ids()[:2]
    await call("block.exclude", block_id=first, excluded=True, cut_out=True)
    text = (await call("context.export", format="markdown"))["text"]
    assert document.text(first) not in text and document.text(second) in text
    lines = (await call("context.export", format="jsonl"))["text"]
    assert f'"id": "{first}"' in lines


def credited_to(exported: str, name: str, kind: str) -> str:
    """An export whose author bo has another name and kind."""
    bo = '"username": "bo", "kind": "human"'
    assert bo in exported
    return exported.replace(bo, f'"username": "{name}", "kind": "{kind}"')


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("amy", "human"), ("bo", "human"), ("aria", "model"), ("system", "system")),
        ("a-feed", "source"),
    ],
)
async def test_import_by_another_owner_credits_nobody_else_who_is_here(
    kernel: Kernel, amy: Actor, written: str, name: str, kind: str
) -> None:
    exported = (await kernel.call(amy, "context.export", {}))["text"]
    eve = await other_owner(kernel, amy)
    strangers = exported.replace('"username": "amy"', '"username": "eve"').replace(
        '"username": "aria"', '"username": "nova"'
    )
    params = {"text": credited_to(strangers, name, kind), "label": "forged"}
    with pytest.raises(AntiphonError, match=name) as caught:
        await kernel.call(eve, "context.import", params)
    assert caught.value.code is ErrorCode.PERMISSION_DENIED
    assert caught.value.details["author"] == name
    assert [row.label for row in kernel.contexts.rows()] == ["default"]


async def other_owner(kernel: Kernel, amy: Actor) -> Actor:
    await kernel.principal("eve")
    await kernel.call(amy, "kernel.role", {"principal": "eve", "role": "owner"})
    return kernel.open_session(kernel.members.find("eve"), "test")


async def test_import_by_another_owner_takes_what_they_and_strangers_wrote(
    kernel: Kernel, amy: Actor, written: str
) -> None:
    exported = (await kernel.call(amy, "context.export", {}))["text"]
    for name, taken in (("amy", "eve"), ("bo", "zoe"), ("aria", "nova")):
        exported = exported.replace(f'"username": "{name}"', f'"username": "{taken}"')
    eve = await other_owner(kernel, amy)
    await kernel.call(eve, "context.import", {"text": exported, "label": "copy"})
    again = (await kernel.call(amy, "context.export", {"context": "copy"}))["text"]
    assert [one.get("authors") for one in told(again)] == [
        one.get("authors") for one in told(exported)
    ]


@pytest.mark.parametrize(
    ("name", "kind"), [("system", "human"), ("zoe", "system"), ("bo", "model"), ("aria", "human")]
)
async def test_author_of_another_kind_than_the_one_here_is_refused(
    kernel: Kernel, call: Caller, written: str, name: str, kind: str
) -> None:
    exported = (await call("context.export"))["text"]
    with pytest.raises(AntiphonError, match=name) as caught:
        await call("context.import", text=credited_to(exported, name, kind), label="forged")
    assert caught.value.code is ErrorCode.INVALID_PARAMS
    assert "zoe" not in kernel.members


async def test_import_by_owner_accepts_blocks_of_kernel(kernel: Kernel, call: Caller) -> None:
    said = {"kind": "file", "content": "begin", "status": "done"}
    await kernel.call(kernel.system, "block.create", said)
    exported = (await call("context.export"))["text"]
    await call("context.import", text=exported, label="copy")
    again = (await call("context.export", context="copy"))["text"]
    assert without_label(told(again)) == without_label(told(exported))


def without_label(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line | {"label": ""} for line in lines]


async def test_an_import_makes_no_source_that_is_not_here(
    kernel: Kernel, call: Caller, written: str
) -> None:
    exported = (await call("context.export"))["text"]
    params = {"text": credited_to(exported, "a-feed", "source"), "label": "copy"}
    with pytest.raises(AntiphonError, match="a-feed") as caught:
        await call("context.import", **params)
    assert caught.value.code is ErrorCode.INVALID_PARAMS
    assert "a-feed" not in kernel.members
    await kernel.principal("a-feed", PrincipalKind.SOURCE)
    await call("context.import", **params)


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
