"""Sizes of images and documents, read from their bytes without decoding them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from antiphon_kernel.messages.tokens import FileSize

FILE_SIZE: Final = "file_size"
"""Key of `metadata` of a block with a file: its size, as far as it is known."""

_FIELDS: Final = ("width", "height", "pages")
_LARGEST: Final = 2**31
_PAGE: Final = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_FRAME: Final = re.compile(rb"\xff+([\x01-\xfe])")
_FRAMES_OF_IMAGES: Final = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_BARE_FRAMES: Final = frozenset({0x01, *range(0xD0, 0xDA)})


def read_size(data: bytes) -> FileSize:
    """Return the size of a file, as far as its bytes say it.

    The pages of a document are counted where they are not compressed.
    """
    found: tuple[int, int] | None = None
    if data.startswith(b"\x89PNG"):
        found = _numbers(data, 16, 4, "big"), _numbers(data, 20, 4, "big")
    elif data.startswith(b"GIF8"):
        found = _numbers(data, 6, 2, "little"), _numbers(data, 8, 2, "little")
    elif data.startswith(b"\xff\xd8"):
        found = _jpeg(data)
    elif data.startswith(b"RIFF"):
        found = _webp(data)
    elif data.startswith(b"%PDF"):
        return FileSize(pages=len(_PAGE.findall(data)) or None)
    if found is None or min(found) < 1:
        return FileSize()
    return FileSize(*found)


def size_metadata(size: FileSize) -> dict[str, Any]:
    """Return what the metadata of a block says about the size of its file."""
    known = {name: getattr(size, name) for name in _FIELDS if getattr(size, name) is not None}
    return {FILE_SIZE: known} if known else {}


def stated_size(metadata: Mapping[str, Any]) -> FileSize:
    """Return the size that the metadata of a block states; people write in it as they like."""
    stated = metadata.get(FILE_SIZE)
    if not isinstance(stated, Mapping):
        return FileSize()
    values = {name: stated.get(name) for name in _FIELDS}
    return FileSize(
        **{name: one for name, one in values.items() if type(one) is int and 0 < one < _LARGEST}
    )


def _numbers(data: bytes, at: int, length: int, order: Any, mask: int = -1) -> int:
    return int.from_bytes(data[at : at + length], order) & mask


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while (frame := _FRAME.match(data, at)) is not None:
        at, kind = frame.end(), frame[1][0]
        if kind in _BARE_FRAMES:
            continue
        if kind in _FRAMES_OF_IMAGES:
            return _numbers(data, at + 5, 2, "big"), _numbers(data, at + 3, 2, "big")
        at += max(2, _numbers(data, at, 2, "big"))
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8 ":
            size = (_numbers(data, at, 2, "little", 0x3FFF) for at in (26, 28))
            return next(size), next(size)
        case b"VP8L":
            bits = _numbers(data, 21, 4, "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            return _numbers(data, 24, 3, "little") + 1, _numbers(data, 27, 3, "little") + 1
    return None
