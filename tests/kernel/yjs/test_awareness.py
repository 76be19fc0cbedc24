"""Awareness updates are what a Yjs peer sends and reads."""

from __future__ import annotations

import pycrdt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.yjs.awareness import AwarenessEntry, decode_awareness, encode_awareness

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
states = st.none() | st.dictionaries(st.text(max_size=8), json_values, max_size=4)
entries = st.lists(
    st.builds(AwarenessEntry, st.integers(0, 2**53 - 1), st.integers(0, 2**32), states),
    max_size=5,
).map(tuple)


@given(entries)
def test_states_read_back(entries: tuple[AwarenessEntry, ...]) -> None:
    assert decode_awareness(encode_awareness(entries)) == entries


def test_library_reads_names_beyond_ascii() -> None:
    doc = pycrdt.Doc()
    awareness = pycrdt.Awareness(doc)
    state = {"name": "åmy 漢字 😀"}
    awareness.apply_awareness_update(encode_awareness([AwarenessEntry(5, 3, state)]), "test")
    assert awareness.states[5] == state


def test_state_of_the_library_is_read() -> None:
    awareness = pycrdt.Awareness(pycrdt.Doc(client_id=9))
    awareness.set_local_state({"cursor": 3})
    (entry,) = decode_awareness(awareness.encode_awareness_update([9]))
    assert (entry.client, entry.state) == (9, {"cursor": 3})


@pytest.mark.parametrize(
    "text",
    ["3", "[]", "NaN", '{"a":NaN}', '{"a":1e999}', "{", '{"a":' * 100_000 + "1" + "}" * 100_000],
)
def test_states_that_are_not_finite_json_objects_are_refused(text: str) -> None:
    payload = text.encode()
    header = bytes([1, 1, 1])
    size = bytearray()
    length = len(payload)
    while length > 127:
        size.append(128 | length & 127)
        length >>= 7
    size.append(length)
    with pytest.raises(ValueError, match=r"."):
        decode_awareness(header + bytes(size) + payload)


@given(st.binary(max_size=60))
def test_decode_awareness_of_any_bytes_returns_or_raises_value_error(data: bytes) -> None:
    try:
        decode_awareness(data)
    except ValueError:
        return
