"""Changes that a document makes itself, reported like those it hears of, at the right place."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pycrdt import Doc, Map, Text

from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.enums import BlockKind, Role, Status
from antiphon_kernel.types.ids import ContextId, RandomIds
from antiphon_kernel.types.records import BlockHeader

IDS = RandomIds()
CONTEXT = ContextId("0" * 31 + "1")
AMY = "0" * 31 + "a"
BLOCKS = tuple(f"{CONTEXT}.{AMY}.{number}" for number in (1, 2))
HEADER = BlockHeader(BLOCKS[0], BlockKind.TEXT, Role.USER, Status.RUNNING, "a0", "t", AMY)


def written() -> Document:
    document = Document.create(IDS.client_id(), context=CONTEXT, epoch=IDS.uuid7(), label="default")
    for block in BLOCKS:
        document.create_block(HEADER._replace(id=block), "begun")
    return document


def overheard(document: Document) -> tuple[list[DocumentChange], list[DocumentChange]]:
    """The changes that a document tells, and those of a replica that hears of the same ones."""
    replica = Document(IDS.client_id())
    replica.apply_update(document.update_since())
    own: list[DocumentChange] = []
    heard: list[DocumentChange] = []
    for block in BLOCKS:
        assert document.text(block) == replica.text(block)
    document.watch(own.append)
    replica.watch(heard.append)

    def pass_on(update: bytes, _: object) -> None:
        replica.apply_update(update)

    document.watch_updates(pass_on)
    return own, heard


def write_something(document: Document, choose: random.Random) -> None:
    block = choose.choice(BLOCKS)
    length = document.length(block)
    match choose.randrange(4):
        case 0:
            document.append(block, choose.choice(("é", "漢字", "plain", "")))
        case 1:
            document.splice(block, choose.randint(0, length), 0, choose.choice(("x", "😀")))
        case 2 if length:
            document.splice(block, choose.randrange(length), 1, "")
        case _:
            document.set_fields(block, tool_name=str(choose.random()))


@pytest.mark.parametrize("seed", range(30))
def test_document_reports_equal_changes_for_own_and_remote_writes(seed: int) -> None:
    choose, document = random.Random(seed), written()
    own, heard = overheard(document)
    for _ in range(60):
        if choose.random() < 0.7:
            write_something(document, choose)
            continue
        with document.transaction("several"):
            for _ in range(choose.randint(1, 3)):
                write_something(document, choose)
    assert list(map(what, own)) == list(map(what, heard))


def what(change: DocumentChange) -> tuple[set[str], set[object], set[object]]:
    """Return what a change was about; the CRDT tells it in any order."""
    texts = {(text.block, text.section) for text in change.texts}
    return set(change.touched), set(change.headers), set(texts)


def test_text_that_somebody_replaces_is_written_where_it_is_now() -> None:
    document = written()
    document.append(BLOCKS[0], " here")
    other: Doc[Any] = Doc()
    blocks = other.get("blocks", type=Map)
    other.apply_update(document.update_since())
    blocks[BLOCKS[0]]["content"] = Text("another")
    document.apply_update(other.get_update(document.state_vector()))
    document.append(BLOCKS[0], " text")
    other.apply_update(document.update_since())
    assert str(blocks[BLOCKS[0]]["content"]) == "another text"
