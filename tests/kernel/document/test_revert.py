"""Taking a change back never touches what somebody else wrote, and works after a reload."""

from __future__ import annotations

import random

import pytest

from antiphon_kernel.document.document import Document
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.ids import ContextId, RandomIds
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.wire.id_set import IdSet

IDS = RandomIds()
CONTEXT = ContextId("0" * 31 + "1")
BLOCK = f"{CONTEXT}.{'0' * 32}.1"
Unit = tuple[IdSet, IdSet]


def document_with_block() -> Document:
    document = Document.found(IDS.client_id(), context=CONTEXT, epoch=IDS.uuid7(), label="x")
    document.create_block(
        BlockHeader(BLOCK, BlockKind.TEXT, Role.USER, Status.DONE, "a0", "t", "0" * 32)
    )
    return document


def write(document: Document, who: str, offset: int, deleted: int, inserted: str) -> Unit:
    with document.transaction(who, writer=who) as written:
        document.splice(BLOCK, offset, deleted, inserted)
    return written.inserted, written.deleted


def revert(document: Document, unit: Unit) -> Unit:
    taken = document.revert(*unit, [BLOCK], "undo")
    return taken.inserted, taken.deleted


def reloaded(document: Document) -> Document:
    fresh = Document(IDS.client_id())
    fresh.apply_update(document.update_since())
    return fresh


def test_two_writers_of_one_client_id_are_told_apart() -> None:
    document = document_with_block()
    first = write(document, "bot", 0, 0, "aaaa")
    write(document, "amy", 4, 0, "XX")
    second = write(document, "bot", 6, 0, "bbbb")
    undone = [revert(document, second), revert(document, first)]
    assert document.text(BLOCK) == "XX"
    for unit in reversed(undone):
        revert(document, unit)
    assert document.text(BLOCK) == "aaaaXXbbbb"


def test_all_of_one_writers_text_goes_and_comes_back_around_the_others() -> None:
    document = document_with_block()
    rng = random.Random(4)
    units = []
    for _ in range(50):
        who = rng.choice("abc")
        unit = write(document, who, rng.randint(0, len(document.text(BLOCK))), 0, who * 3)
        if who == "a":
            units.append(unit)
    document = reloaded(document)
    settled = document.text(BLOCK)
    undone = [revert(document, unit) for unit in reversed(units)]
    assert document.text(BLOCK) == settled.replace("a", "")
    document = reloaded(document)
    for unit in reversed(undone):
        revert(document, unit)
    assert document.text(BLOCK) == settled


def test_deleted_text_comes_back_after_a_reload() -> None:
    document = document_with_block()
    write(document, "amy", 0, 0, "one two three")
    unit = write(document, "amy", 4, 4, "")
    document = reloaded(document)
    revert(document, unit)
    assert document.text(BLOCK) == "one two three"


def test_the_header_is_not_taken_back() -> None:
    document = document_with_block()
    with document.transaction("amy", writer="amy") as written:
        document.splice(BLOCK, 0, 0, "text")
        document.set_fields(BLOCK, edited_after_done=True)
    document.revert(written.inserted, written.deleted, [BLOCK], "undo")
    assert document.text(BLOCK) == ""
    assert document.header(BLOCK).edited_after_done


@pytest.mark.parametrize("chunk", range(8))
def test_random_edits_undo_redo_and_reload_never_cost_another_author_a_character(
    chunk: int,
) -> None:
    for seed in range(chunk * 10, chunk * 10 + 10):
        rng = random.Random(seed)
        document = document_with_block()
        undo: dict[str, list[Unit]] = {who: [] for who in "abc"}
        redo: dict[str, list[Unit]] = {who: [] for who in "abc"}
        for _ in range(60):
            who = rng.choice("abc")
            before = document.text(BLOCK)
            act = rng.random()
            if act < 0.1 and before:
                offset = rng.randint(0, len(before) - 1)
                count = rng.randint(1, min(6, len(before) - offset))
                undo[who].append(write(document, who, offset, count, ""))
                redo[who].clear()
                continue
            if act < 0.6:
                offset = rng.choice([rng.randint(0, len(before)), len(before)])
                unit = write(document, who, offset, 0, who * rng.randint(1, 5))
                undo[who].append(unit)
                redo[who].clear()
            elif act < 0.8 and undo[who]:
                redo[who].append(revert(document, undo[who].pop()))
            elif act < 0.92 and redo[who]:
                undo[who].append(revert(document, redo[who].pop()))
                continue  # doing a deletion again does delete other people's text again
            else:
                document = reloaded(document)
            after = document.text(BLOCK)
            for other in "abc":
                if other != who:
                    assert after.count(other) >= before.count(other), (seed, before, after)
        settled = document.text(BLOCK)
        undone = [revert(document, unit) for unit in reversed(undo["a"])]
        for unit in reversed(undone):
            revert(document, unit)
        assert document.text(BLOCK) == settled, seed
