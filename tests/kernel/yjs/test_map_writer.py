"""Maps that are written without a document are what the CRDT engine makes of them."""

from __future__ import annotations

from typing import Any

import pycrdt
import pytest

from antiphon_kernel.yjs.map_writer import MapWriter
from antiphon_kernel.yjs.state_vector import decode_state_vector
from antiphon_kernel.yjs.update import decode_update
from antiphon_kernel.yjs.update_writer import encode_any

CLIENT = 2**31 + 5
TEXTS = ("", "plain", "é漢😀" * 100)


def read(*updates: bytes) -> dict[str, Any]:
    doc: pycrdt.Doc[Any] = pycrdt.Doc()
    for update in updates:
        doc.apply_update(update)
    root = doc.get("root", type=pycrdt.Map)
    return {key: {**root[key], "text": str(root[key]["text"])} for key in root}


def test_map_writer_updates_read_as_they_were_written_one_by_one_and_together() -> None:
    writer = MapWriter(CLIENT, 0)
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
    writer = MapWriter(CLIENT, 0)
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
    writer = MapWriter(CLIENT, 7)
    early = MapWriter(CLIENT, 0).write(("root", "a"), (), ("text", "one"))
    other = MapWriter(CLIENT + 1, 7).write(("root", "a"), (), ("text", "one"))
    for update in (early, other):
        with pytest.raises(ValueError, match="goes on here"):
            writer.take(update)


def test_map_writer_everything_holds_items_of_another_client_too() -> None:
    other: pycrdt.Doc[Any] = pycrdt.Doc(client_id=CLIENT + 1)
    other.get("meta", type=pycrdt.Map)["format"] = "1"
    founded = decode_update(other.get_update()).structs
    writer = MapWriter(CLIENT, 0)
    for written in ((), ("a",)):
        for key in written:
            writer.write(("root", key), (), ("text", "one"))
        doc: pycrdt.Doc[Any] = pycrdt.Doc()
        doc.apply_update(writer.everything(beside=founded))
        assert doc.get("meta", type=pycrdt.Map).to_py() == {"format": "1"}
        assert set(doc.get("root", type=pycrdt.Map).keys()) == set(written)
