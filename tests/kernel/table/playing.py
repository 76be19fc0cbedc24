"""Playing the table at one door, and making what two doors answer comparable."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from tests.kernel.table.doors import Answer, Door
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
    for context, principal, seq in _BLOCK_ID.findall(json.dumps(results)):
        short = (shortest(context, labels), shortest(principal, people))
        forms[f"{context}.{principal}.{seq}"] = [
            f"{labels[context]}.{people[principal]}.{seq}",
            f"{short[0]}.{short[1]}.{seq}",
            f"{context}.{people[principal]}.{seq}",
            f"{labels[context]}.{short[1]}.{seq}",
            f"{short[0]}.{principal}.{seq}",
        ]
    return forms


def shortest(one: str, among: dict[str, str]) -> str:
    """Return the shortest start of an id with which no other one begins or ends."""
    for length in range(1, 33):
        start = one[:length]
        if sum(other.startswith(start) or other.endswith(start) for other in among) == 1:
            return start
    return one
