"""Updates that are read and written again say the same, also to the CRDT engine."""

from __future__ import annotations

import random
from typing import Any

import pycrdt
import pytest

from antiphon_kernel.yjs.id_set import normalise
from antiphon_kernel.yjs.merge import continuations, squash
from antiphon_kernel.yjs.state_vector import decode_state_vector
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct, decode_update
from antiphon_kernel.yjs.update_writer import encode_text_item, encode_update
from tests.kernel.yjs.random_documents import random_documents


@pytest.mark.parametrize("seed", range(40))
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


@pytest.mark.parametrize("right", [None, ItemId(3, 127), ItemId(2**32 - 1, 2**21)])
@pytest.mark.parametrize("clock", [1, 128, 16_384, 2**32])
@pytest.mark.parametrize("text", ["x", "é漢😀" * 60])
def test_one_piece_of_text_is_encoded_as_any_update(
    text: str, clock: int, right: ItemId | None
) -> None:
    units = len(text.encode("utf-16-le")) // 2
    origin = ItemId(300, clock - 1)
    item = Struct(300, clock, units, ContentKind.STRING, origin, right, content=text)
    found = encode_text_item(300, clock, origin, right, text.encode())
    assert found == encode_update([item], ())


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
