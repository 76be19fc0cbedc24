"""A replay comes to every version that the context had, without what is left out at its end."""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.contexts.lineage.forking import read_version
from antiphon_kernel.document.rendering import render
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.storage import JOURNAL_FILE
from antiphon_kernel.storage.schema import JOURNAL_SCHEMA
from antiphon_kernel.transfer import replay_lines
from antiphon_kernel.transfer.exporting import header_fields
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.presence import PresenceState
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.replay import (
    ChangedHeader,
    CreatedBlock,
    ReplayChange,
    ReplayEnd,
    ReplayLine,
    ReplayPresence,
    ReplayPrincipal,
    SplicedText,
    read_replay_line,
)
from tests.clocks import ManualClock
from tests.errors import raises
from tests.kernel.kernel.calls import Make, OpenKernel
from tests.kernel.transfer.stories import Story, actors

__all__ = ("actors",)

UNTOLD = {"blob", "runs_for", "source_context", "metadata"}

Blocks = dict[str, tuple[dict[str, Any], str]]


async def exported(kernel: Kernel, context: Context, redact: Sequence[str] = ()) -> bytes:
    return "".join([piece async for piece in replay_lines(kernel, context, redact)]).encode()


def lines_of(text: bytes) -> list[ReplayLine]:
    return [read_replay_line(number, line) for number, line in enumerate(text.splitlines(), 1)]


def played(lines: Sequence[ReplayLine]) -> Iterator[tuple[int, Blocks]]:
    """The blocks after each change, with the version of the context."""
    blocks: Blocks = {}
    for line in lines:
        for edit in line.edits if isinstance(line, ReplayChange) else ():
            match edit:
                case CreatedBlock(block=block, header=header, text=text):
                    assert block not in blocks
                    blocks[block] = header, text
                case ChangedHeader(block=block, fields=fields):
                    header, text = blocks[block]
                    header = {n: v for n, v in (header | fields).items() if v is not None}
                    blocks[block] = header, text
                case SplicedText(block=block, offset=at, deleted=deleted, inserted=inserted):
                    header, text = blocks[block]
                    assert at + deleted <= len(text)
                    text = text[:at] + inserted + text[at + deleted :]
                    blocks[block] = header, text
        if isinstance(line, ReplayChange):
            yield line.version, dict(blocks)


async def rebuilt(kernel: Kernel, context: Context, version: int) -> Blocks:
    document = await read_version(kernel.journal, context.row, version, 99)
    return {
        block: (shown(header_fields(document.header(block))), render(document, block))
        for block in document.block_ids()
    }


def shown(header: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in header.items() if name not in UNTOLD}


def without(blocks: Blocks, hidden: set[str]) -> Blocks:
    kept = {block: one for block, one in blocks.items() if block not in hidden}
    return {block: (shown(header), text) for block, (header, text) in kept.items()}


@pytest.mark.parametrize("seed", range(int(os.environ.get("ANTIPHON_CASES", "1"))))
async def test_replay_of_a_random_context_is_what_the_journal_says_at_every_version(
    kernel: Kernel, actors: list[Actor], seed: int
) -> None:
    kernel.presences.is_on = False  # the journal is the same for two exports
    story = Story(kernel, await kernel.context(), actors, seed)
    await story.go_on(100)
    excluded, draft = story.texts[1], {"role": "user", "kind": "text", "content": "unsent"}
    await kernel.call(actors[0], "block.exclude", {"block_id": excluded})
    made = await kernel.call(actors[0], "block.create", draft)
    await check(kernel, story.context, {excluded, made["block_id"]}, seed)
    await kernel.call(actors[0], "context.fork", {"context": "default", "label": "fork"})
    fork = Story(kernel, await kernel.context("fork"), actors, seed)
    document = fork.context.document
    fork.texts = [one for one in document.block_ids() if document.text(one)]
    await fork.go_on(20)
    hidden = {
        one
        for one in document.block_ids()
        if document.header(one).source_block in (excluded, made["block_id"])
    }
    await check(kernel, fork.context, hidden, seed)


async def check(kernel: Kernel, context: Context, hidden: set[str], seed: int) -> None:
    text = await exported(kernel, context)
    assert text == await exported(kernel, context)
    lines = lines_of(text)
    changes = [line for line in lines if isinstance(line, ReplayChange)]
    assert lines[-1] == ReplayEnd(changes=len(changes))
    assert [one.at for one in changes] == sorted(one.at for one in changes)
    named: set[str] = set()
    for line in lines:
        if isinstance(line, ReplayPrincipal):
            named.add(line.id)
        if isinstance(line, ReplayChange):
            assert line.by in named
    states = dict(played(lines))
    pattern = re.compile(r"more m|e\b|😀")
    redacted = lines_of(await exported(kernel, context, [pattern.pattern]))
    for version, blocks in played(redacted):
        for block, (_, said) in blocks.items():
            whole = states[version][block][1]
            shown = {at for at, one in enumerate(said) if one == whole[at]}
            assert {at for at, one in enumerate(said) if one == "█"} | shown == {*range(len(whole))}
            for found in pattern.finditer(whole):
                assert shown.isdisjoint(range(*found.span()))
    rng = random.Random(seed)
    for version in (context.seq, *rng.sample(range(1, context.seq), min(50, context.seq - 1))):
        known = max((one for one in states if one <= version), default=0)
        replayed = without(states.get(known, {}), set())
        assert not hidden & replayed.keys()
        assert replayed == without(await rebuilt(kernel, context, version), hidden), version


async def test_what_is_left_out_is_in_no_line(kernel: Kernel, amy: Actor, make: Make) -> None:
    secret = "S3CRET"
    shown = [await make("said ", role="user", status="done", metadata={"note": secret})]
    hidden = [await make(f"excluded {secret}", role="user", status="done")]
    draft = await make(f"a draft of {secret}", role="user")
    file = {"name": f"{secret}.txt", "data": b64encode(secret.encode()).decode()}
    await kernel.call(amy, "block.attach", {"block_id": draft, "files": [file]})
    call = ""
    for is_call in (True, False):
        given = json.dumps({"path": secret if is_call else ""})
        about = {"tool_name": "read", "input": given, "agent_call": {"title": secret}}
        new = {"kind": "tool_call", "parent_id": shown[0], "metadata": about}
        call = await make(role="model", **new)
        result = await make(secret, role="tool", kind="tool_result", parent_id=call)
        hidden.append(call if is_call else result)
    await make(secret, role="user", status="done", metadata={"ephemeral": True})
    for one in hidden:
        await kernel.call(amy, "block.exclude", {"block_id": one})
    text = await exported(kernel, await kernel.context())
    assert secret.encode() not in text
    changes = [line for line in lines_of(text) if isinstance(line, ReplayChange)]
    edits = [edit for change in changes for edit in change.edits]
    created = [edit.block for edit in edits if isinstance(edit, CreatedBlock)]
    assert created == [*shown, call]


async def test_what_is_redacted_is_in_no_line_from_its_first_character_on(
    kernel: Kernel, amy: Actor, aria: Actor, make: Make
) -> None:
    kernel.presences.is_on = False
    prompt = await make("prompt", role="user", status="done")
    written = {"role": "model", "kind": "text", "content": "key: ", "parent_id": prompt}
    block = (await kernel.call(aria, "block.create", written))["block_id"]
    context = await kernel.context()
    for piece in ("S", "3CR", "ET-", "9 and ", "more S3C"):
        await kernel.call(aria, "block.append", {"block_id": block, "text": piece})
        context.appends.flush_all()
    splice = {"block_id": block, "offset": 6, "delete_count": 2, "insert": "\n"}
    await kernel.call(amy, "block.splice", splice)  # apart again
    await kernel.call(amy, "block.undo", {})
    about = {"tool_name": "curl", "input": '{"token": "a\\"b", "key": "S3CRET-1"}'}
    await make(role="model", kind="tool_call", parent_id=prompt, metadata=about)
    patterns = [r"S3CRET-\d", 'a"b', "^default$", "^amy$"]
    text = await exported(kernel, context, patterns)
    assert text == await exported(kernel, context, patterns)
    assert not re.search(rb'S3CRE|3CR|a\\+"b|"default"|"amy"', text.replace(b"more S3C", b""))
    *_, (_, shown) = played(lines_of(text))
    assert shown[block][1] == "key: ████████ and more S3C"
    (header,) = [one for one, _ in shown.values() if one["kind"] == "tool_call"]
    assert json.loads(header["input"]) == {"token": "███", "key": "████████"}


@pytest.mark.parametrize(
    ("pattern", "code"),
    [
        ("(", "invalid_regex"),
        ("", "invalid_params"),
        ("(?s)a.*b", "invalid_params"),
        (r"a\nb", "invalid_params"),
        ("(a|a)*$", "regex_timeout"),
    ],
)
async def test_pattern_that_cannot_be_used_is_named(
    kernel: Kernel, make: Make, pattern: str, code: str
) -> None:
    await make("a" * 40 + "b", status="done")
    with raises(ErrorCode(code)):
        await exported(kernel, await kernel.context(), [pattern])


@pytest.mark.sqlite
async def test_presence_is_recorded_and_is_nowhere_in_what_is_left_out(
    open_kernel: OpenKernel, clock: ManualClock, data: Path
) -> None:
    kernel = await open_kernel()
    amy = kernel.open_session(kernel.owner, "test")
    new = {"role": "user", "kind": "text", "content": "one"}
    shown = (await kernel.call(amy, "block.create", {**new, "status": "done"}))["block_id"]
    draft = (await kernel.call(amy, "block.create", new))["block_id"]
    context = await kernel.context()
    state = PresenceState(amy.principal.id, "amy", "human", 3, amy.session)
    context.presence.put(7, replace(state, block="nowhere", cursor=2**80, activity="\ud800"))
    for block, cursor in ((shown, 1), (shown, 2), (shown, 2), (draft, 1), (shown, 99)):
        context.presence.put(7, replace(state, block=block, cursor=1, activity="typing"))
        context.presence.put(7, replace(state, block=block, cursor=cursor, activity="typing"))
        kernel.presences.flush()
        clock.ms += 100
    await kernel.close()
    clock.ms += 60_000
    kernel = await open_kernel()
    bo = kernel.open_session(await kernel.principal("bo"), "test")
    await kernel.call(bo, "block.create", {**new, "status": "done"})
    context = await kernel.context()
    state = PresenceState(bo.principal.id, "bo", "human", 3, bo.session)
    context.presence.put(7, state)
    kernel.presences.flush()
    clock.ms += 100
    context.presence.put(7, replace(state, session="of another connection"))
    context.presence.remove(7)
    kernel.presences.flush()
    kernel.presences.is_on = False
    context.presence.put(8, replace(state, block=shown))
    await kernel.close()
    assert [str(finding) for finding in (await run_checks(data)).all()] == []
    kernel = await open_kernel()
    context = await kernel.context()
    lines = lines_of(await exported(kernel, context))
    told = [line for line in lines if isinstance(line, ReplayPresence | ReplayChange)]
    assert [
        (one.at, one.activity, one.block, one.cursor) if isinstance(one, ReplayPresence) else one.at
        for one in told
    ] == [
        0,
        (0, "typing", shown, 1),
        (100, "typing", shown, 2),
        (300, "idle", None, None),
        (400, "typing", shown, 3),
        60_500,
        (60_500, "idle", None, None),
        (60_600, None, None, None),
    ]
    await kernel.close()
    with sqlite3.connect(data / JOURNAL_FILE) as writer:  # as the version before has left it
        writer.executescript(
            f"DROP TABLE presences; PRAGMA user_version = {JOURNAL_SCHEMA.newest - 1};"
        )
    kernel = await open_kernel()
    without = lines_of(await exported(kernel, await kernel.context()))
    assert without == [one for one in lines if not isinstance(one, ReplayPresence)]
