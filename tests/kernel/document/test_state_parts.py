"""A document's state in parts says what it says in one, wherever it is cut."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest
from pycrdt import Doc, Map, Text

from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.yjs.id_set import decode_state_vector

CLIENTS: Final = (1, 130, 20_000)
TEXTS: Final = ("a", "😀", "b😀", "é", "some longer text 😀😀 of a block")


def write(chance: random.Random, doc: Doc[Any]) -> None:
    """Write, or remove, something in one of a few texts."""
    blocks: Map[Any] = doc.get("blocks", type=Map)
    with doc.transaction():
        text = blocks[chance.choice("abc")]["content"]
        written = str(text)
        at = len(written[: chance.randint(0, len(written))].encode())
        if chance.random() < 0.3:
            end = written.encode()[at:].decode()[:3]
            del text[at : at + len(end.encode())]
        else:
            text.insert(at, chance.choice(TEXTS))


def drifted(seed: int) -> tuple[Document, Document]:
    """Return what several writers have written together, and a document that has some of it."""
    chance = random.Random(seed)
    docs: list[Doc[Any]] = [Doc(client_id=client, skip_gc=True) for client in CLIENTS]
    docs[0]["blocks"] = Map({key: Map({"content": Text(key), "order": key}) for key in "abc"})
    for doc in docs[1:]:
        doc.apply_update(docs[0].get_update())
    for _ in range(30):
        write(chance, chance.choice(docs))
        if chance.random() < 0.4:
            reader, writer = chance.sample(docs, 2)
            reader.apply_update(writer.get_update(reader.get_state()))
    before = Document(5)
    before.apply_update(docs[0].get_update())
    for doc in docs[1:]:
        docs[0].apply_update(doc.get_update(docs[0].get_state()))
    return read(docs[0]), before


def read(doc: Doc[Any]) -> Document:
    document = Document(6)
    document.apply_update(doc.get_update())
    return document


def texts(document: Document) -> list[tuple[str, str]]:
    return [(block, document.text(block)) for block in document.block_ids()]


@pytest.mark.parametrize("size", [1, 20, 100])
@pytest.mark.parametrize("seed", range(2))
def test_parts_together_say_what_the_state_says(seed: int, size: int) -> None:
    source, before = drifted(seed)
    known = before.state_vector()
    for reader, since in ((Document(7), None), (before, known)):
        whole = Document(8)
        whole.apply_update(source.update_since())
        for part in source.parts_since(since, size):
            reader.apply_update(part)
        assert decode_state_vector(reader.state_vector()) == decode_state_vector(
            source.state_vector()
        )
        assert texts(reader) == texts(whole)


def test_long_text_of_one_writer_comes_in_parts_of_the_size_that_was_asked_for() -> None:
    doc: Doc[Any] = Doc(client_id=1, skip_gc=True)
    blocks: Map[Any] = doc.get("blocks", type=Map)
    for number in range(200):
        blocks[f"block {number}"] = Map({"content": Text("many words " * 10)})
    source = read(doc)
    whole = len(source.update_since())
    parts = list(source.parts_since(None, whole // 10))
    assert max(map(len, parts)) < whole / 9
    assert sum(map(len, parts)) < whole * 1.01


def test_what_is_written_between_two_parts_is_in_one_of_them() -> None:
    source, _ = drifted(1)
    reader, late = Document(7), Doc[Any](client_id=9)
    late.apply_update(source.update_since())
    for number, part in enumerate(source.parts_since(None, 50)):
        reader.apply_update(part)
        if number < 3:
            write(random.Random(number), late)
            source.apply_update(late.get_update())
    assert decode_state_vector(reader.state_vector()) == decode_state_vector(source.state_vector())


def test_document_that_gets_parts_tells_of_all_blocks_at_the_end() -> None:
    source, _ = drifted(2)
    reader, told = Document(7), list[DocumentChange]()
    reader.watch(told.append)
    for part in source.parts_since(None, 50):
        reader.apply_part(part)
    assert not told and not len(reader) and reader.is_partial
    for _ in reader.finish_parts():
        assert not told
    assert [sorted(one.added) for one in told] == [list(reader.block_ids())]
    assert texts(reader) == texts(source)


def test_block_that_is_made_here_while_parts_come_is_told_once() -> None:
    source, _ = drifted(2)
    reader, told = Document(7), list[DocumentChange]()
    reader.watch(told.append)
    for part in source.parts_since(None, 50):
        reader.apply_part(part)
    own: Doc[Any] = Doc(client_id=10)
    own["blocks"] = Map({"own": Map({"order": "z"})})
    reader.apply_update(own.get_update(), "another origin")
    list(reader.finish_parts())
    assert [sorted(one.added) for one in told] == [["own"], list(source.block_ids())]
    assert reader.block_ids()[-1] == "own"
