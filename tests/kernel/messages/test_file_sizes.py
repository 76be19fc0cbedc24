"""Sizes of images and documents, as their bytes say them."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.messages import FileSize, read_size, size_metadata, stated_size
from tests.kernel.messages.generated import EXAMPLES, JSON

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480) + b"\x08\2\0\0\0"
GIF = b"GIF89a" + struct.pack("<HH", 20, 10) + b"\0\0\0"
EXIF = b"\xff\xe1" + struct.pack(">H", 12) + b"Exif\0\0\xff\xc0\0\0"
FRAME = b"\xff\xff\xc2" + struct.pack(">HBHHB", 17, 8, 300, 400, 3)
JPEG = b"\xff\xd8" + EXIF + FRAME
LOSSY = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 64, 32)
LOSSLESS = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 99 | 49 << 14)
EXTENDED = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0" + b"\xff\x03\0" + b"\xff\x01\0"
PDF = b"%PDF-1.7\n<</Type/Pages/Count 2>> <</Type /Page>> <</Type/Page/Parent 1 0 R>>"


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (PNG, FileSize(640, 480)),
        (GIF, FileSize(20, 10)),
        (JPEG, FileSize(400, 300)),
        (LOSSY, FileSize(64, 32)),
        (LOSSLESS, FileSize(100, 50)),
        (EXTENDED, FileSize(1024, 512)),
        (PDF, FileSize(pages=2)),
        (PNG[:18], FileSize()),
        (b"GIF89a", FileSize()),
        (b"\xff\xd8\xff", FileSize()),
        (b"\xff\xd8" + b"\xff\xc0", FileSize()),
        (b"RIFF\0\0\0\0WEBPxxxx", FileSize()),
        (b"%PDF-1.7 <<compressed>>", FileSize()),
        (b"a text", FileSize()),
        (b"", FileSize()),
    ],
)
def test_size_of_a_file_is_what_its_bytes_say(data: bytes, size: FileSize) -> None:
    assert read_size(data) == size
    assert stated_size(size_metadata(size)) == size


BEGINNINGS = st.sampled_from([PNG[:16], GIF[:6], JPEG[:2], LOSSY[:16], EXTENDED[:16], b"%PDF", b""])


@EXAMPLES
@given(BEGINNINGS, st.binary(max_size=64))
def test_size_of_any_bytes_is_none_or_positive(beginning: bytes, rest: bytes) -> None:
    size = read_size(beginning + rest)
    assert all(one is None or one > 0 for one in (size.width, size.height, size.pages))


@EXAMPLES
@given(st.dictionaries(st.sampled_from(["width", "height", "pages"]), JSON) | JSON)
def test_size_that_somebody_has_written_is_positive_or_none(value: Any) -> None:
    size = stated_size({"file_size": value})
    assert all(one is None or one > 0 for one in (size.width, size.height, size.pages))
