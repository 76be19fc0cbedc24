"""Loading what was stored gives the same document: every field of every kind, known or not."""

from __future__ import annotations

import random
from typing import Any

import pytest

from antiphon_kernel.document import header as stored_header
from antiphon_kernel.document.document import Document
from antiphon_kernel.text.fractional_index import key_between
from antiphon_kernel.types.enums import BlockKind, DriftKind, Role, Status, ToolKind
from antiphon_kernel.types.records import BlockHeader
from tests.kernel.invariants.alphabet import Alphabet
from tests.kernel.invariants.cases import cases, run_cases
from tests.kernel.invariants.oracle import Violation
from tests.kernel.invariants.world import World, open_world

FINISHED = (Status.DONE, Status.ERROR, "a status of a later version")
"""Statuses that opening leaves alone, whoever has written them."""


def json_value(rng: random.Random, word: str, depth: int = 0) -> Any:
    """Anything that JSON can hold."""
    match rng.randrange(7 if depth < 2 else 5):
        case 0:
            return word
        case 1:
            return rng.choice((0, -1, 2**53, 10**20))
        case 2:
            return rng.choice((True, False, None))
        case 3:
            return rng.choice((0.5, -1e300))
        case 4:
            return ""
        case 5:
            return [json_value(rng, word, depth + 1) for _ in range(rng.randint(0, 3))]
        case _:
            return {
                f"{word}{n}": json_value(rng, word, depth + 1) for n in range(rng.randint(0, 3))
            }


def random_header(world: World, number: int, kind: str, order: str) -> BlockHeader:
    """Each field is set or not; what has a closed set may have a value that is not in it."""
    rng, alphabet = world.rng, Alphabet(1)
    author = world.actors["bo"].principal.id

    def maybe(value: Any) -> Any:
        return value if rng.random() < 0.6 else None

    def word() -> str:
        return alphabet.some(rng, 4)

    return BlockHeader(
        id=f"{world.context.id}.{author}.{number}",
        kind=kind,
        role=rng.choice((*Role, "a role of a later version")),
        status=rng.choice(FINISHED),
        order=order,
        created="2026-01-01T00:00:00.000Z",
        author=author,
        parent=maybe(f"{world.context.id}.{author}.{rng.randint(1, 9)}"),
        tool_kind=maybe(rng.choice((*ToolKind, "later"))),
        drift_kind=maybe(rng.choice((*DriftKind, "later"))),
        tool_name=maybe(word()),
        tool_call_id=maybe(word()),
        input=maybe('{"a": "' + alphabet.letter(rng) + '"}'),
        exit_code=maybe(rng.choice((0, 1, -15, 2**31))),
        duration_ms=maybe(rng.choice((0, 350, 2**31))),
        is_error=rng.random() < 0.5,
        truncated=rng.random() < 0.5,
        source_context=maybe(str(world.context.id)),
        source_block=maybe(f"{world.context.id}.{author}.1"),
        path=maybe(word()),
        language=maybe(word()),
        media_type=maybe("image/png"),
        blob=maybe("0123456789abcdef" * 4),
        blob_bytes=maybe(rng.randrange(2**40)),
        collapsed=rng.random() < 0.5,
        excluded=rng.random() < 0.5,
        ephemeral=rng.random() < 0.5,
        edited_after_done=rng.random() < 0.5,
        stop_reason=maybe(word()),
        stopped_by=maybe("bo"),
        permission=maybe(rng.choice(("once", "always", "denied", "withdrawn", "revoked"))),
        runs_for=maybe("amy"),
        decided_by=maybe("bo"),
        metadata={word(): json_value(rng, word()) for _ in range(rng.randint(0, 3))},
    )


async def written(world: World) -> dict[str, BlockHeader]:
    """One block of every kind, and of one that this version does not know."""
    due: dict[str, BlockHeader] = {}
    order = key_between(None, None)
    document = world.context.document
    for number, kind in enumerate((*BlockKind, "a kind of a later version"), 1):
        header = random_header(world, number, kind, order)
        order = key_between(order, None)
        text = Alphabet(1).word(world.rng, 8)
        world.context.write(
            world.actors["bo"],
            "create",
            lambda header=header, text=text: document.create_block(header, text),  # type: ignore[misc]
            blocks=(),
        )
        due[header.id] = header
    await world.settle()
    return due


def compare(document: Document, due: dict[str, BlockHeader], texts: dict[str, str]) -> None:
    for block, header in due.items():
        found = document.header(block)
        for name, was, now in zip(BlockHeader._fields, header, found, strict=True):
            if was != now:
                raise Violation(f"{name} was {was!r} and is {now!r}")
        if document.text(block) != texts[block]:
            raise Violation(f"the text was {texts[block]!r} and is {document.text(block)!r}")


async def stored_and_loaded(rng: random.Random) -> None:
    """Write, restart, go on after a crash, and compare each time."""
    async with open_world(rng) as world:
        due = await written(world)
        texts = {block: world.context.document.text(block) for block in due}
        compare(world.context.document, due, texts)
        for again in (world.restart, world.crash, world.restart):
            await again()
            compare(world.context.document, due, texts)


@cases(0.05)
async def test_field_of_any_kind_is_loaded_as_it_was_stored(rng: random.Random) -> None:
    await stored_and_loaded(rng)


@pytest.mark.parametrize(
    "field",
    sorted(stored_header.FIELDS.keys() - {"author"}),  # the id has it too
)
async def test_field_that_is_not_stored_is_missed(
    monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    stored_value = stored_header.stored_value

    def forget(name: str, value: object) -> object | None:
        return None if name == field else stored_value(name, value)

    monkeypatch.setattr(stored_header, "stored_value", forget)
    with pytest.raises(Violation):
        await run_cases(10, stored_and_loaded)
