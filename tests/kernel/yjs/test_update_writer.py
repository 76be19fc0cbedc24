"""Updates that are read and written again, or without a document, say the same to the engine."""

from __future__ import annotations

import random
from typing import Any

import pycrdt
import pytest

from antiphon_kernel.yjs.id_set import decode_state_vector, normalise
from antiphon_kernel.yjs.merge import continuations, squash
from antiphon_kernel.yjs.update import decode_update
from antiphon_kernel.yjs.update_writer import MapWriter, encode_any, encode_update
from tests.kernel.yjs.random_documents import random_documents


@pytest.mark.parametrize("seed", range(5))
def test_update_written_again_makes_the_same_document(seed: int) -> None:
    (document, *others), updates = random_documents(random.Random(seed))
    for other in others:
        document.apply_update(other.get_update())
    decoded = decode_update(pycrdt.merge_updates(*updates))
    for update in (encode_update(decoded.structs, normalise(decoded.deletions)), squash(decoded)):
        again: pycrdt.Doc[Any] = pycrdt.Doc()
        again.apply_update(update)
        assert again.get("t", type=pycrdt.Text).diff() == document.get("t", type=pycrdt.Text).diff()
        for root, kind in (("a", pycrdt.Array), ("m", pycrdt.Map)):
            assert again.get(root, type=kind).to_py() == document.get(root, type=kind).to_py()
        known = decode_state_vector(document.get_state())
        assert decode_state_vector(again.get_state()) == known


def test_typing_merged_from_single_keys_becomes_one_item() -> None:
    doc: pycrdt.Doc[Any] = pycrdt.Doc()
    text = doc.get("t", type=pycrdt.Text)
    updates: list[bytes] = []
    doc.observe(lambda event: updates.append(event.update))
    for number in range(100):
        text.insert(number, "x")
    decoded = decode_update(pycrdt.merge_updates(*updates))
    assert continuations(decoded.structs) == 99
    (joined,) = decode_update(squash(decoded)).structs
    assert joined.content == "x" * 100


CLIENT = 2**31 + 5
TEXTS = ("", "plain", "é漢😀" * 100)


def read(*updates: bytes) -> dict[str, Any]:
    doc: pycrdt.Doc[Any] = pycrdt.Doc()
    for update in updates:
        doc.apply_update(update)
    root = doc.get("root", type=pycrdt.Map)
    return {key: {**root[key], "text": str(root[key]["text"])} for key in root}


def test_map_writer_updates_read_as_they_were_written_one_by_one_and_together() -> None:
    writer = MapWriter(CLIENT)
    values: dict[str, object] = {"flag": True, "number": 200.0, "name": "x" * 200}
    encoded = [(name, encode_any(value)) for name, value in values.items()]
    updates = [
        writer.write(("root", f"key {at}"), encoded, ("text", text))
        for at, text in enumerate(TEXTS)
    ]
    expected = {f"key {at}": {**values, "text": text} for at, text in enumerate(TEXTS)}
    assert read(*updates) == read(writer.everything()) == expected
    doc: pycrdt.Doc[Any] = pycrdt.Doc()
    doc.apply_update(writer.everything())
    assert decode_state_vector(doc.get_state()) == {CLIENT: writer.clock}


def test_map_writer_takes_what_the_engine_has_written_and_goes_on() -> None:
    writer = MapWriter(CLIENT)
    first = writer.write(("root", "a"), (), ("text", "one"))
    doc: pycrdt.Doc[Any] = pycrdt.Doc(client_id=CLIENT)
    doc.apply_update(first)
    before = doc.get_state()
    doc.get("root", type=pycrdt.Map)["b"] = pycrdt.Map({"text": pycrdt.Text("two😀")})
    writer.take(doc.get_update(before))
    writer.write(("root", "c"), (), ("text", "three"))
    texts = {key: one["text"] for key, one in read(writer.everything()).items()}
    assert texts == {"a": "one", "b": "two😀", "c": "three"}


def test_map_writer_given_an_update_of_another_place_refuses_it() -> None:
    writer, another = MapWriter(CLIENT), MapWriter(CLIENT + 1)
    early = writer.write(("root", "a"), (), ("text", "one"))
    another.write(("root", "a"), (), ("text", "one"))
    other = another.write(("root", "b"), (), ("text", "one"))
    for update in (early, other):
        with pytest.raises(ValueError, match="goes on here"):
            writer.take(update)


def test_map_writer_everything_holds_items_of_another_client_too() -> None:
    other: pycrdt.Doc[Any] = pycrdt.Doc(client_id=CLIENT + 1)
    other.get("meta", type=pycrdt.Map)["format"] = "1"
    founded = decode_update(other.get_update()).structs
    writer = MapWriter(CLIENT)
    for written in ((), ("a",)):
        for key in written:
            writer.write(("root", key), (), ("text", "one"))
        doc: pycrdt.Doc[Any] = pycrdt.Doc()
        doc.apply_update(writer.everything(beside=founded))
        assert doc.get("meta", type=pycrdt.Map).to_py() == {"format": "1"}
        assert set(doc.get("root", type=pycrdt.Map).keys()) == set(written)
