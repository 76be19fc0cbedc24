"""A long document is told, read and kept in memory in bulk, and says the same as a short one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pycrdt import Doc, Map

from antiphon_kernel.document.changes import REMOTE, DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.types.enums import Status
from antiphon_kernel.yjs.id_set import decode_state_vector
from tests.kernel.document.structured import AMY, CONTEXT, HEADER, IDS, founded, replica_of

COUNT = 300
TEXT = "a long text 😀 " * 30


def block(number: int) -> str:
    return f"{CONTEXT}.{AMY}.{number}"


@pytest.fixture
def document() -> Document:
    """A document with blocks in all states, one without, and a key of the root that is none."""
    written = founded()
    with written.transaction(None):
        for number in range(COUNT):
            status = tuple(Status)[number % len(Status)]
            header = HEADER._replace(id=block(number), order=f"{COUNT - number:05}", status=status)
            written.create_block(header, TEXT)
        for number in range(0, COUNT, 3):
            written.splice(block(number), 2, 40, "")
    odd: Doc[Any] = Doc(client_id=IDS.client_id())
    odd["blocks"] = Map({"no block": "text", block(COUNT): Map({"role": "user"})})
    written.apply_update(odd.get_update())
    return written


def heard(documents: Sequence[Document]) -> list[list[DocumentChange]]:
    changes: list[list[DocumentChange]] = [[] for _ in documents]
    for one, known in zip(documents, changes, strict=True):
        one.watch(known.append)
    return changes


def forward(document: Document, replica: Document) -> None:
    def apply(update: bytes, _: object) -> None:
        replica.apply_update(update)

    document.watch_updates(apply)


def test_first_update_is_told_as_another_origin_is_told_it(document: Document) -> None:
    first, other = Document(IDS.client_id()), Document(IDS.client_id())
    changes = heard((first, other))
    updates: list[bytes] = []
    first.watch_updates(lambda update, _: updates.append(update))
    state = document.update_since()
    first.apply_update(state, REMOTE)
    other.apply_update(state, "somebody")
    assert updates == [state]
    ((told,), (expected,)) = changes
    assert set(told.added) == set(expected.added) == set(document.block_ids())
    assert told.origin == REMOTE
    assert list(first.block_ids()) == list(other.block_ids()) == list(document.block_ids())
    assert [first.header(one) for one in first.block_ids()] == [
        document.header(one) for one in document.block_ids()
    ]
    states = [decode_state_vector(one.state_vector()) for one in (first, document)]
    assert states[0] == states[1]


def test_document_is_watched_after_its_first_update(document: Document) -> None:
    replica = replica_of(document)
    (known,) = heard((replica,))
    forward(document, replica)
    document.append(block(1), "more")
    document.set_fields(block(1), order="00000")
    assert [one.touched for one in known] == [(block(1),), (block(1),)]
    assert list(replica.block_ids()) == list(document.block_ids())
    assert replica.text(block(1)) == TEXT + "more"


def test_first_update_that_is_none_leaves_the_document_watched() -> None:
    replica = Document(IDS.client_id())
    with pytest.raises(ValueError, match="not a document update"):
        replica.apply_update(b"\xff" * 2**17)
    (known,) = heard((replica,))
    replica.create_block(HEADER)
    assert [one.added for one in known] == [(HEADER.id,)]


def test_open_blocks_are_those_whose_headers_say_so(document: Document) -> None:
    expected = [
        one
        for one in document.block_ids()
        if document.header(one).status in (Status.PENDING, Status.RUNNING)
    ]
    assert block(COUNT) in expected
    assert document.open_blocks() == expected
    assert document.open_blocks([*expected[1::-1], "no block"]) == expected[:2]


def test_open_blocks_follow_their_status(document: Document) -> None:
    replica = replica_of(document)
    forward(document, replica)
    first, *others = document.open_blocks()
    document.set_fields(first, status="done")
    for one in (document, replica):
        assert one.open_blocks() == others
    document.set_fields(first, status="running")
    for one in (document, replica):
        assert one.open_blocks() == [first, *others]


def test_metadata_are_found_by_their_text(document: Document) -> None:
    document.set_fields(block(2), metadata={"type": "summary"})
    document.set_fields(block(3), metadata={"type": "other"})
    assert document.blocks_with_metadata(document.block_ids(), "summary") == [block(2)]


def test_opening_a_long_document_reads_no_header(document: Document) -> None:
    replica = replica_of(document)
    replica.open_blocks()
    assert not replica._headers  # noqa: SLF001  what is in memory is what this is about
