"""Forks: what is copied, at which version, who wrote it, and what may not be parted."""

from __future__ import annotations

import asyncio
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.ids import BlockId
from antiphon_kernel.types.records import Actor
from tests.errors import raises
from tests.kernel.kernel.calls import Caller, Make, OpenKernel, refused


def texts(context: Context) -> list[str]:
    document = context.document
    return [document.text(block) for block in document.block_ids()]


def in_fork(block: str, fork: Context) -> str:
    old = BlockId.parse(block)
    return str(BlockId(fork.id, old.principal, old.seq))


async def fork_of(kernel: Kernel, actor: Actor, **params: Any) -> Context:
    made = await kernel.call(actor, "context.fork", {"context": "default", **params})
    return await kernel.context(made["context_id"])


async def authors(kernel: Kernel, actor: Actor, block: str) -> list[tuple[str, str, int, str]]:
    """Each run as its text, username, version and time."""
    text = (await kernel.call(actor, "block.read", {"block_id": block}))["content"]
    runs = (await kernel.call(actor, "block.blame", {"block_id": block}))["runs"]
    assert "".join(text[run["start"] : run["end"]] for run in runs) == text
    return [
        (text[run["start"] : run["end"]], run["username"], run["version"], run["time"])
        for run in runs
    ]


async def test_fork_reads_as_the_original_and_each_goes_its_own_way(
    kernel: Kernel, amy: Actor, make: Make, open_kernel: Any
) -> None:
    fields = {"language": "en", "path": "a/b", "mood": "calm", "collapsed": True, "excluded": True}
    first = await make("one 😀\r\n", status="done", metadata=fields)
    child = await make("two", role="model", parent_id=first, status="done")
    fork = await fork_of(kernel, amy, label="other")
    assert list(fork.document.block_ids()) == [in_fork(first, fork), in_fork(child, fork)]
    read = await kernel.call(amy, "block.read", {"block_id": in_fork(first, fork)})
    original = await kernel.call(amy, "block.read", {"block_id": first})
    assert (read.pop("source_block"), read.pop("version")) == (first, 1)
    assert read.pop("source_context") == (await kernel.context()).id
    assert (read.pop("name"), original.pop("name")) == ("other.amy.1", "default.amy.1")
    assert {**read, "block_id": first, "version": 1} == original
    assert fork.document.header(in_fork(child, fork)).parent == in_fork(first, fork)
    await kernel.call(amy, "block.splice", {"block_id": child, "offset": 0, "insert": "HERE "})
    there = {"block_id": in_fork(child, fork), "offset": 0, "insert": "THERE "}
    await kernel.call(amy, "block.splice", there)
    expected = [texts(await kernel.context()), texts(fork)]
    assert expected == [["one 😀\r\n", "HERE two"], ["one 😀\r\n", "THERE two"]]
    await kernel.close()
    again = await open_kernel()
    assert [texts(await again.context(one)) for one in ("default", "other")] == expected


async def test_fork_at_any_version_is_what_the_context_was_then(
    kernel: Kernel, context: Context, amy: Actor, bo: Actor, make: Make
) -> None:
    rng = random.Random(6)
    blocks = [await make("first\n", status="done")]
    seen: list[tuple[int, list[str], list[str]]] = []
    for _ in range(30):
        block = rng.choice(blocks)
        match rng.randrange(4):
            case 0:
                blocks.append(await make(f"b{len(blocks)} 漢", status="done", after=block))
            case 1:
                other = rng.choice(blocks)
                if other != block:
                    await kernel.call(amy, "block.move", {"block_id": block, "before": other})
            case _:
                length = len(context.document.text(block))
                at = rng.randint(0, length)
                splice = {
                    "block_id": block,
                    "offset": at,
                    "delete_count": rng.randint(0, min(2, length - at)),
                    "insert": rng.choice(("x", "ü😀", "")),
                }
                await kernel.call(rng.choice((amy, bo)), "block.splice", splice)
        seen.append((context.seq, list(context.document.block_ids()), texts(context)))
    blames = {block: await authors(kernel, amy, block) for block in blocks}
    for seq, ids, contents in [*rng.sample(seen, 6), seen[-1]]:
        fork = await fork_of(kernel, amy, at=seq)
        assert list(fork.document.block_ids()) == [in_fork(block, fork) for block in ids]
        assert texts(fork) == contents
        for block in ids:
            copied = await authors(kernel, amy, in_fork(block, fork))
            if seq == seen[-1][0]:
                assert copied == blames[block]


async def test_fork_begins_with_nothing_to_undo_and_counts_on(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    await make("one")
    last = await make("two")
    fork = await fork_of(kernel, amy, label="other")
    with raises(ErrorCode.NOTHING_TO_UNDO):
        await kernel.call(amy, "block.undo", {"context": "other"})
    new = await make("three", context="other")
    assert BlockId.parse(new).seq == BlockId.parse(last).seq + 1
    await kernel.call(amy, "block.undo", {"context": "other"})
    assert texts(fork)[:2] == ["one", "two"]


async def test_fork_of_streaming_block_interrupts_copy_only(
    kernel: Kernel, amy: Actor, aria: Actor, make: Make
) -> None:
    prompt = await make("go", status="done")
    new = {"role": "model", "kind": "text", "parent_id": prompt}
    block = (await kernel.call(aria, "block.create", new))["block_id"]
    stream = {"block_id": block, "text": "half a ", "stream": True}
    await kernel.call(aria, "block.append", stream)
    draft = await make("mine")
    forking = asyncio.create_task(fork_of(kernel, amy, label="other"))
    for word in ("sentence ", "and more\n") * 5:
        await kernel.call(aria, "block.append", {**stream, "text": word})
    fork = await forking
    copy = fork.document.header(in_fork(block, fork))
    assert (copy.status, copy.stop_reason) == ("error", "interrupted")
    assert fork.document.text(copy.id).startswith("half a ")
    assert fork.document.header(in_fork(draft, fork)).status == "running"
    await kernel.call(aria, "block.status", {"block_id": block, "status": "done"})
    document = (await kernel.context()).document
    assert document.header(block).status == "done"
    assert document.text(block) == "half a " + "sentence and more\n" * 5


@pytest.fixture
async def conversation(kernel: Kernel, aria: Actor, make: Make) -> list[str]:
    """Question, call, thought, result, answer."""
    question = await make("?", status="done")
    made = [question]
    for role, kind, answered, extra in (
        ("model", "tool_call", 0, {"tool_call_id": "c1"}),
        ("model", "thinking", 0, {}),
        ("tool", "tool_result", 1, {}),
        ("model", "text", 0, {}),
    ):
        params = {
            "role": role,
            "kind": kind,
            "content": kind,
            "status": "done",
            "parent_id": made[answered],
            "metadata": extra,
        }
        made.append((await kernel.call(aria, "block.create", params))["block_id"])
    return made


@pytest.mark.parametrize("by_number", [False, True])
async def test_fork_range_keeps_call_and_result_together(
    kernel: Kernel, amy: Actor, conversation: list[str], by_number: bool
) -> None:
    blocks = conversation
    if by_number:
        # As older kernels let it be written: the result answers the question as its call does.
        context = await kernel.context()
        document, question = context.document, blocks[0]
        move = partial(document.set_fields, blocks[3], parent=question)
        await context.write(kernel.system, "create", move, blocks=[blocks[3]], undo=None).saved()
    for start in range(5):
        for end in range(start, 5):
            wanted = {"first": blocks[start], "last": blocks[end]}
            if (start <= 1 <= end) == (start <= 3 <= end):
                fork = await fork_of(kernel, amy, blocks=wanted)
                expected = [in_fork(one, fork) for one in blocks[start : end + 1]]
                assert list(fork.document.block_ids()) == expected
                continue
            count = len(kernel.contexts.rows())
            with raises(ErrorCode.INVALID_PARAMS) as caught:
                await fork_of(kernel, amy, blocks=wanted)
            assert len(kernel.contexts.rows()) == count
            details = caught.value.details
            assert (details["call"], details["result"]) == (blocks[1], blocks[3])
            whole = {name: details[name] for name in ("first", "last")}
            assert whole == {"first": blocks[min(start, 1)], "last": blocks[max(end, 3)]}
            await fork_of(kernel, amy, blocks=whole)


async def test_fork_without_parent_block_reparents_to_nearest_ancestor(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    top = await make("top", status="done")
    middle = await make("middle", parent_id=top)
    low = await make("low", parent_id=middle)
    await kernel.call(amy, "block.move", {"block_id": middle, "before": top})
    fork = await fork_of(kernel, amy, blocks={"first": top})
    assert fork.document.header(in_fork(low, fork)).parent == in_fork(top, fork)
    alone = await fork_of(kernel, amy, blocks={"first": low})
    assert alone.document.header(in_fork(low, alone)).parent is None


@pytest.mark.sqlite
async def test_answer_without_its_question_is_tied_to_the_original_only(
    kernel: Kernel, amy: Actor, conversation: list[str], data: Path
) -> None:
    """Fork only what is asked for, by which what it answers is found."""
    question, *_, answer = conversation
    fork = await fork_of(kernel, amy, blocks={"first": answer})
    copy = fork.document.header(in_fork(answer, fork))
    assert (copy.parent, copy.source_block, copy.role) == (None, answer, "model")
    original = await kernel.call(amy, "block.read", {"block_id": copy.source_block or ""})
    assert original["parent_id"] == question
    further = await fork_of(kernel, amy, context=fork.label)
    again = further.document.header(in_fork(answer, further))
    assert (again.parent, again.source_block) == (None, copy.id)
    exported = await kernel.call(amy, "context.export", {"context": fork.label})
    params = {"text": exported["text"], "label": "imported"}
    imported = await kernel.context(
        (await kernel.call(amy, "context.import", params))["context_id"]
    )
    assert imported.document.header(in_fork(answer, imported)).parent is None
    new = {"role": "user", "kind": "text", "parent_id": copy.id, "content": "Why?"}
    await kernel.call(amy, "block.create", new)
    await kernel.close()
    assert [str(finding) for finding in (await run_checks(data)).all()] == []


BAD_FORKS: list[tuple[dict[str, Any], ErrorCode]] = [
    ({"at": 0}, ErrorCode.INVALID_PARAMS),
    ({"at": 99}, ErrorCode.INVALID_PARAMS),
    ({"label": "default"}, ErrorCode.INVALID_PARAMS),
    ({"label": "No Name"}, ErrorCode.INVALID_PARAMS),
    ({"context": "nowhere"}, ErrorCode.CONTEXT_NOT_FOUND),
    ({"blocks": {"first": "default.amy.9"}}, ErrorCode.BLOCK_NOT_FOUND),
    ({"blocks": {"first": "other.amy.1"}}, ErrorCode.BLOCK_NOT_FOUND),
    ({"blocks": {"first": "default.amy.2"}, "at": 2}, ErrorCode.BLOCK_NOT_FOUND),
    ({"blocks": {"first": "default.amy.2", "last": "default.amy.1"}}, ErrorCode.INVALID_PARAMS),
]


async def test_fork_that_cannot_be_leaves_nothing_behind(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    for _ in range(2):
        await make("x")
    await kernel.create_context("other")
    await make("y", context="other")
    for params, code in BAD_FORKS:
        with raises(code):
            await fork_of(kernel, amy, **params)
        assert len(kernel.contexts.rows()) == 2
    await fork_of(kernel, amy, label="fine")


async def test_unknown_values_are_copied_as_they_are(
    kernel: Kernel, context: Context, amy: Actor, make: Make
) -> None:
    odd = await make("x")
    write = context.write(
        amy,
        "test",
        lambda: context.document.set_fields(odd, kind="poem", status="asleep"),
        blocks=[odd],
    )
    await write.saved()
    fork = await fork_of(kernel, amy)
    header = fork.document.header(in_fork(odd, fork))
    assert (header.kind, header.status) == ("poem", "asleep")


# Lineage: who made a context, and of which version of which context it is a fork


async def listed(kernel: Kernel, actor: Actor) -> dict[str, dict[str, Any]]:
    contexts = (await kernel.call(actor, "context.list", {}))["contexts"]
    return {one["label"]: one for one in contexts}


def lineage(info: dict[str, Any]) -> tuple[str, str | None, int | None]:
    return info["username"], info.get("source_label"), info.get("source_version")


async def test_context_names_its_creator_and_its_source_also_after_a_restart(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make, open_kernel: OpenKernel
) -> None:
    await make("one")
    made = await kernel.call(bo, "context.create", {"label": "notes"})
    fork = await kernel.call(bo, "context.fork", {"context": "default", "label": "left"})
    await kernel.call(amy, "context.fork", {"context": "left", "label": "leaf"})
    expected = {
        "default": ("system", None, None),
        "notes": ("bo", None, None),
        "left": ("bo", "default", fork["source_version"]),
        "leaf": ("amy", "left", fork["context_version"]),
    }
    assert (made["creator"], lineage(made)) == (bo.principal.id, expected["notes"])
    for _ in range(2):
        found = await listed(kernel, amy)
        assert {label: lineage(info) for label, info in found.items()} == expected
        assert found["leaf"]["source_context"] == found["left"]["context_id"]
        await kernel.close()
        kernel = await open_kernel()
        amy = kernel.open_session(kernel.owner, "test")


async def test_fork_follows_the_label_of_its_source(
    kernel: Kernel, amy: Actor, call: Caller
) -> None:
    await call("context.create", label="notes")
    await call("context.fork", context="notes", label="copy")
    await call("context.rename", context="notes", label="ideas")
    assert (await listed(kernel, amy))["copy"]["source_label"] == "ideas"


async def test_export_of_a_fork_says_where_it_comes_from_and_is_imported(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make, call: Caller
) -> None:
    await make("one")
    fork = await kernel.call(bo, "context.fork", {"context": "default", "label": "copy"})
    text = (await call("context.export", context="copy"))["text"]
    header = json.loads(text.splitlines()[0])
    assert (header["creator"], header["source_label"]) == ("bo", "default")
    assert header["source_version"] == fork["source_version"]
    await call("context.import", text=text, label="again")
    assert lineage((await listed(kernel, amy))["again"]) == ("amy", None, None)


async def test_blame_in_a_fork_names_versions_that_can_be_read(
    kernel: Kernel, amy: Actor, bo: Actor, make: Make
) -> None:
    block = await make("one\n")
    for number in range(3):
        await kernel.call(bo, "block.append", {"block_id": block, "text": f"bo {number}\n"})
    for source, copy in (("default", "left"), ("left", "leaf")):
        await kernel.call(amy, "context.fork", {"context": source, "label": copy})
        (block,) = (await kernel.context(copy)).document.block_ids()
        splice = {"block_id": block, "offset": 0, "insert": f"{copy}\n"}
        await kernel.call(amy, "block.splice", splice)
    read = await kernel.call(amy, "block.read", {"block_id": block})
    runs = (await kernel.call(amy, "block.blame", {"block_id": block}))["runs"]
    own, left, *first = runs
    assert "source_block" not in own
    assert left["source_block_name"].startswith("left.")
    assert {one["source_block_name"].split(".")[0] for one in first} == {"default"}
    for run in runs:
        at = {"block_id": run.get("source_block", block), "version": run["version"]}
        then = (await kernel.call(amy, "block.read", at))["content"]
        assert read["content"][run["start"] : run["end"]] in then
        by = {one["version"]: one["username"] for one in await versions(kernel, amy, at)}
        assert by[run["version"]] == run["username"]
    beyond = {"block_id": block, "version": first[-1]["version"]}
    error = await refused(kernel, amy, "block.read", beyond)
    assert error.code is ErrorCode.INVALID_PARAMS


async def versions(kernel: Kernel, actor: Actor, at: dict[str, Any]) -> list[dict[str, Any]]:
    params = {"block_id": at["block_id"]}
    return list((await kernel.call(actor, "block.history", params))["versions"])
