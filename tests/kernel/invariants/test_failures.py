"""A failed operation changes nothing: not the document, not the disk, not what can be undone."""

from __future__ import annotations

import random
from typing import Any

import pytest

from antiphon_kernel.text.edits import EditOperation, plan_edit
from antiphon_kernel.text.lines import split_lines
from antiphon_kernel.tools import edit
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import TextSplice
from tests.errors import raises
from tests.kernel.invariants.alphabet import Alphabet
from tests.kernel.invariants.cases import cases
from tests.kernel.invariants.world import open_world


def failing(lines: list[str], rng: random.Random) -> tuple[dict[str, Any], ErrorCode]:
    """An operation that fails wherever it stands in a batch, and how.

    It touches none of the lines from 5 on.
    """
    count = len(lines)
    past = {"start_line": count, "end_line": count + 1}
    at = rng.randrange(5)
    wrong = {"start_line": at, "end_line": at + 1, "expected_text": lines[at] + "?"}
    choices: list[tuple[dict[str, Any], ErrorCode]] = [
        ({"op": "delete", **past}, ErrorCode.LINE_OUT_OF_RANGE),
        ({"op": "replace", **past, "content": "x"}, ErrorCode.LINE_OUT_OF_RANGE),
        ({"op": "insert", "line": count + 1, "content": "x"}, ErrorCode.LINE_OUT_OF_RANGE),
        ({"op": "insert", "line": -1, "content": "x"}, ErrorCode.LINE_OUT_OF_RANGE),
        ({"op": "delete", "start_line": 1, "end_line": 1}, ErrorCode.INVALID_PARAMS),
        ({"op": "delete", **wrong}, ErrorCode.CONTENT_MISMATCH),
        ({"op": "replace", **wrong, "content": "x"}, ErrorCode.CONTENT_MISMATCH),
    ]
    return rng.choice(choices)


async def fail_everywhere(rng: random.Random) -> None:
    """One batch, with what fails at each place of it in turn."""
    alphabet = Alphabet(0)
    async with open_world(rng) as world:
        text = "".join(f"{alphabet.some(rng).replace(chr(10), '')}\n" for _ in range(8))
        block = (await world.call("amy", "block.create", kind="file", content=text))["block_id"]
        lines = split_lines(text)
        good: list[dict[str, Any]] = [
            {"op": "insert", "line": 8, "content": alphabet.some(rng)},
            {"op": "replace", "start_line": 6, "end_line": 7, "content": alphabet.some(rng)},
            {"op": "insert", "line": 5, "content": alphabet.some(rng)},
        ]
        for index in range(len(good) + 1):
            bad, code = failing(lines, rng)
            operations = [*good[:index], bad, *good[index:]]
            before = world.context.document.update_since(), world.disk.everything()
            with raises(code) as caught:
                await world.call("bo", "block.edit", block_id=block, operations=operations)
            assert caught.value.details["operation"] == index
            assert (world.context.document.update_since(), world.disk.everything()) == before
        await world.call("bo", "block.edit", block_id=block, operations=good)
        await world.call("bo", "block.undo", block_id=block)
        world.compare(text, block, "after undo")
        with pytest.raises(AntiphonError):
            await world.call("bo", "block.undo", block_id=block)


@cases(0.1)
async def test_edit_whose_batch_fails_at_any_place_changes_nothing(rng: random.Random) -> None:
    await fail_everywhere(rng)


async def test_edit_that_leaves_out_what_fails_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a kernel that carries out as much of a batch as it can."""

    def as_much_as_works(text: str, operations: list[EditOperation]) -> list[TextSplice]:
        working: list[EditOperation] = []
        for one in operations:
            try:
                plan_edit(text, [*working, one])
            except AntiphonError:
                continue
            working.append(one)
        return plan_edit(text, working)

    monkeypatch.setattr(edit, "plan_edit", as_much_as_works)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        await fail_everywhere(random.Random(1))
