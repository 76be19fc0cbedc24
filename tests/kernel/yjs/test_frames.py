"""Frames are what a Yjs peer sends and reads."""

from __future__ import annotations

import pycrdt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.yjs.frames import (
    Ack,
    AwarenessUpdate,
    Frame,
    Omitted,
    PermissionDenied,
    QueryAwareness,
    Recent,
    SyncStep1,
    SyncStep2,
    SyncUpdate,
    decode_frame,
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
