"""Every door answers one table of calls in the same way."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Final

from antiphon_kernel.registry import EVERY_CALL
from antiphon_kernel.types.errors import ErrorCode
from tests.kernel.reference.error_catalogue import CATALOGUE
from tests.kernel.reference.examples import ALL_TOOLS
from tests.kernel.table.doors import (
    Answer,
    CommandLine,
    Door,
    InProcess,
    in_process,
    on_the_command_line,
    over_http,
)
from tests.kernel.table.rows import ROWS, Row

_HEX_ID: Final = re.compile(r"[0-9a-f]{32}")
_CUT_ID: Final = re.compile(r"[0-9a-f]{8,31}\.\.\.")
_BLOCK_ID: Final = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{32})\.([0-9]+)")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_DERIVED_ID: Final = re.compile(r"turn_\d+_[0-9a-f]{6}|tc_[0-9a-f]{12}|~[0-9a-f]{6}")
"""Ids of turns and calls, which are derived from block ids and times."""
_ESTIMATES: Final = frozenset({"estimated_tokens", "cached_tokens", "tokens", "tokens_before"})
"""Fields that depend on the digits of ids."""
_OF_THE_DOOR: Final = frozenset({"token", "join", "sessions", "ended"})
"""Fields about connections, of which each door has its own."""


async def play(door: Door) -> list[Answer | None]:
    """The answers to the rows; None for what this door cannot be asked."""
    kept: dict[str, str] = {}
    answers: list[Answer | None] = []
    for row in ROWS:
        if row.text:
            sent = door.takes_text
            answers.append(await door.send(row.by, row.tool, row.params) if sent else None)
            continue
        answer = await door.call(row.by, row.tool, filled(row.params, kept))
        answers.append(answer)
        if row.keep is not None:
            assert "result" in answer, f"{row}: {answer}"
            made = answer["result"]
            kept[row.keep] = made.get("block_id") or made["message_id"]
    return answers


def filled(params: Any, kept: dict[str, str]) -> Any:
    """`params` with the id of a block in the place of its name."""
    if isinstance(params, str) and params.startswith("@") and params[1:] in kept:
        return kept[params[1:]]
    if isinstance(params, dict):
        return {filled(key, kept): filled(value, kept) for key, value in params.items()}
    if isinstance(params, list):
        return [filled(value, kept) for value in params]
    return params


def code_of(answer: Answer) -> str | None:
    return answer.get("error", {}).get("code")


def comparable(rows: list[tuple[Row, Answer | None]]) -> Iterator[Answer | None]:
    """Answers with ids numbered as they appear, and without times."""
    names: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"id{len(names)}")

    for row, answer in rows:
        if answer is None:
            yield None
            continue
        if (row.text and "error" in answer) or code_of(answer) == "context_too_long":
            # Each door says in its own words what a call looks like there; estimates depend on the
            # digits of ids.
            yield {"error": {"code": code_of(answer)}}
            continue
        text = json.dumps(_without(answer, _OF_THE_DOOR | _ESTIMATES), ensure_ascii=True)
        text = _DERIVED_ID.sub(named, _HEX_ID.sub(named, text))
        yield json.loads(_TIME.sub("time", _CUT_ID.sub("…", text)))


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(one, names) for key, one in value.items() if key not in names}
    if isinstance(value, list):
        return [_without(one, names) for one in value]
    return value


async def forms_of_every_id(door: Door, answers: list[Answer | None]) -> dict[str, list[str]]:
    """Every block id in a result, with the other ways to write it."""
    contexts = (await door.call(None, "context.list", {"archived": True}))["result"]["contexts"]
    members = (await door.call(None, "kernel.members", {}))["result"]["members"]
    labels = {one["context_id"]: one["label"] for one in contexts}
    people = {one["principal"]: one["username"] for one in members}
    results = [one for one in answers if one is not None and "result" in one]
    forms: dict[str, list[str]] = {}
    found = _BLOCK_ID.findall(json.dumps(results))
    known = labels.keys() | {context for context, *_ in found}
    for context, principal, seq in found:
        if context not in labels:
            continue  # a file
        short = (shortest(context, known), shortest(principal, people.keys()))
        forms[f"{context}.{principal}.{seq}"] = [
            f"{labels[context]}.{people[principal]}.{seq}",
            f"{short[0]}.{short[1]}.{seq}",
            f"{context}.{people[principal]}.{seq}",
            f"{labels[context]}.{short[1]}.{seq}",
            f"{short[0]}.{principal}.{seq}",
        ]
    return forms


def shortest(one: str, among: Collection[str]) -> str:
    """Return the shortest start of an id with which no other one begins or ends."""
    for length in range(1, 33):
        start = one[:length]
        if sum(other.startswith(start) or other.endswith(start) for other in among) == 1:
            return start
    return one


OF_THE_DOORS: Final = frozenset({ErrorCode.INVALID_JSON, ErrorCode.UNKNOWN_TOOL})
NOT_BY_ASKING: Final = frozenset(
    {ErrorCode.STORAGE_FAILED, ErrorCode.NO_KERNEL, ErrorCode.RATE_LIMITED}
)
"""These need a broken disk, a kernel that ends, or haste."""
ASKED_BY_MODELS: Final = frozenset({"permission.decide", "elicitation.answer"})
"""These succeed for calls of a model only: tests/kernel/turns/test_permissions.py makes some, and
tests/kernel/mcp_servers/."""
OF_SESSIONS: Final = frozenset({"key.decide", "session.end", "ssh.open"})
"""These succeed with numbers of what is going on now: tests/kernel/access/test_ssh_keys.py."""
OF_CONFLICTS: Final = frozenset({"file.resolve", "drift.cancel"})
"""These succeed where another program has written the same, or a kernel was killed:
tests/kernel/files/, tests/kernel/drift/."""
WITH_SERVERS: Final = frozenset({"file.ask", "agent.set"})
"""These succeed where a language server or an agent runs: tests/kernel/files/, agents/."""
FOLLOWING: Final = frozenset({"block.subscribe", "block.unsubscribe"})
"""Tools that are answered with a stream, for which each door has a form of its own."""

DOORS: dict[str, Callable[[Path], AbstractAsyncContextManager[Door]]] = {
    "in process": in_process,
    "http": over_http,
    "command line": on_the_command_line,
}


def test_table_has_every_tool_and_every_error() -> None:
    done = {row.tool for row in ROWS if row.fails is None}
    assert (
        set(ALL_TOOLS.names)
        - done.union(FOLLOWING, ASKED_BY_MODELS, OF_SESSIONS, OF_CONFLICTS, WITH_SERVERS)
        == set()
    ), "give each a row that succeeds"
    can_happen = {code for name in ALL_TOOLS.names for code in ALL_TOOLS[name].errors}
    reached = {row.fails for row in ROWS}
    missing = {*can_happen, *OF_THE_DOORS} - reached - NOT_BY_ASKING
    assert missing == set(), "give each a row that fails like it"


def check_answers(answers: list[Answer | None]) -> None:
    """Check that each row is answered as stated, with errors that the catalogue tells of."""
    wrong = [
        f"{row.tool} {str(row.params)[:200]}: {str(answer)[:300]}, expected {row.fails}"
        for row, answer in zip(ROWS, answers, strict=True)
        if answer is not None and code_of(answer) != row.fails
    ]
    assert wrong == []
    failed = [one for one in zip(ROWS, answers, strict=True) if one[1] and "error" in one[1]]
    assert [said for row, answer in failed for said in undocumented(row, answer or {})] == []


def undocumented(row: Row, answer: Answer) -> list[str]:
    """Return what an error has that neither its tool nor the catalogue tells of."""
    error = answer["error"]
    code = ErrorCode(error["code"])
    assert error["message"].strip()
    said = [
        f"{code}: {name}"
        for name in sorted(set(error) - {"code", "message"})
        if name not in CATALOGUE[code].fields
    ]
    if row.tool in ALL_TOOLS.names:
        if code not in {*ALL_TOOLS[row.tool].errors, *EVERY_CALL, *OF_THE_DOORS}:
            said.append(f"{row.tool} fails with {code}")
    return said


async def check_every_id(door: Door, answers: list[Answer | None]) -> None:
    """Check that what is printed can be given back, in full, by names, and cut short."""
    found = await forms_of_every_id(door, answers)
    assert len(found) > 8
    for full, others in found.items():
        read = await door.call(None, "block.read", {"block_id": full})
        for form in others:
            assert await door.call(None, "block.read", {"block_id": form}) == read, form


async def test_doors_answer_every_row_as_stated_and_alike(tmp_path: Path) -> None:
    played = {}
    for number, (name, opened) in enumerate(DOORS.items()):
        async with opened(tmp_path / str(number)) as door:
            answers = await play(door)
            check_answers(answers)
            if isinstance(door, InProcess):
                await check_every_id(door, answers)  # which the kernel resolves
            played[name] = list(comparable(list(zip(ROWS, answers, strict=True))))
            if isinstance(door, CommandLine):
                check_single_calls(door)
    for name in ("http", "command line"):
        for row, here, there in zip(ROWS, played["in process"], played[name], strict=True):
            assert here is None or here == there, f"{row.tool} {str(row.params)[:200]} by {name}"
    both = zip(ROWS, played["http"], played["command line"], strict=True)
    assert [row for row, here, there in both if here != there] == []


def check_single_calls(line: CommandLine) -> None:
    """A process for one call answers like a stream of them, and says so with its exit code."""
    code, found = line.once("session.whoami", {}, "--as", "bo")
    assert (code, found["result"]["username"]) == (0, "bo")
    code, found = line.once("block.read", {"block_id": "default.bo.1"})
    assert (code, found["result"]["status"]) == (0, "done")
    code, found = line.once("block.read", {"block_id": "0.bo.1"})
    assert (code, code_of(found)) == (1, "ambiguous_id")
    code, found = line.once("block.raed", {})
    assert (code, code_of(found)) == (1, "unknown_tool")
    code, found = line.once("block.list", {"context": "attic"}, "--context", "default")
    assert (code, code_of(found)) == (1, "context_not_found")
