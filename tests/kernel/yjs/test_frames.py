"""Frames and awareness updates are what a Yjs peer sends and reads."""

from __future__ import annotations

import pycrdt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.yjs.frames import (
    Ack,
    AwarenessEntry,
    AwarenessUpdate,
    Frame,
    Omitted,
    PermissionDenied,
    QueryAwareness,
    Recent,
    SyncStep1,
    SyncStep2,
    SyncUpdate,
    decode_awareness,
    decode_frame,
    encode_awareness,
    encode_frame,
)

STRINGS = st.dictionaries(st.text(), st.text())

frames = st.one_of(
    st.builds(SyncStep1, st.binary()),
    st.builds(SyncStep2, st.binary()),
    st.builds(SyncUpdate, st.binary()),
    st.builds(AwarenessUpdate, st.binary()),
    st.just(QueryAwareness()),
    st.builds(PermissionDenied, st.text()),
    st.builds(Ack, st.integers(0, 2**53 - 1)),
    st.builds(Recent, st.integers(0, 2**53 - 1)),
    st.builds(Omitted, st.integers(0, 2**53 - 1), STRINGS, STRINGS),
)


@given(frames)
def test_frame_encoded_decodes_equal(frame: Frame) -> None:
    assert decode_frame(encode_frame(frame)) == frame


@given(st.binary(max_size=400))
def test_payload_frames_equal_those_of_the_library(payload: bytes) -> None:
    assert encode_frame(SyncUpdate(payload)) == pycrdt.create_update_message(payload)
    assert encode_frame(AwarenessUpdate(payload)) == pycrdt.create_awareness_message(payload)


def test_handshake_equals_that_of_the_library() -> None:
    doc = pycrdt.Doc()
    doc.get("t", type=pycrdt.Text).insert(0, "x" * 300)
    step_1 = encode_frame(SyncStep1(b"\x00"))
    assert encode_frame(SyncStep1(doc.get_state())) == pycrdt.create_sync_message(doc)
    answer = pycrdt.handle_sync_message(step_1[1:], doc)
    assert encode_frame(SyncStep2(doc.get_update(b"\x00"))) == answer


@given(st.binary(max_size=60))
def test_decode_frame_of_any_bytes_returns_or_raises_value_error(data: bytes) -> None:
    try:
        frame = decode_frame(data)
    except ValueError:
        return
    assert decode_frame(encode_frame(frame)) == frame


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00", b"\x00\x02", b"\x00\x02\x05ab", b"\x00\x03\x00", b"\x07", b"\x02\x01\x00"],
)
def test_truncated_and_unknown_frames_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_frame(data)


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
