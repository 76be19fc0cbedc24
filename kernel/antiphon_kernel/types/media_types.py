"""Media types of attached files, told by their bytes; names and claims do not count."""

from __future__ import annotations

import re
from typing import Final

PLAIN_TEXT: Final = "text/plain"

PDF: Final = "application/pdf"

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_MEDIA_TYPE: Final = re.compile(
    r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}"
)
_TEXT_CONTROLS: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_BEGINNINGS: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"%PDF-\d"), PDF),
)

ATTACHABLE: Final = ("text", *(kind for _, kind in _BEGINNINGS))
"""The types that every provider takes as an attachment, in words."""


def media_type_of(data: bytes) -> str | None:
    """Return the media type of a file by its content; None if it is none that can be attached."""
    for beginning, kind in _BEGINNINGS:
        if beginning.match(data):
            return kind
    if _TEXT_CONTROLS.search(data):
        return None
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return PLAIN_TEXT


def is_of_type(data: bytes, stated: str) -> bool:
    """Return whether a file is what somebody says it is; a text may be of any type `text/…`."""
    found = media_type_of(data)
    return found == stated or (found == PLAIN_TEXT and is_text_type(stated))


def is_media_type(text: str) -> bool:
    """Return whether a text is a media type in lower case, without parameters."""
    return _MEDIA_TYPE.fullmatch(text) is not None


def is_text_type(kind: str) -> bool:
    """Return whether a file of this media type is read as text."""
    return kind.startswith("text/") and is_media_type(kind)


def file_suffix(kind: str) -> str:
    """Return how names of files of a media type end that is attached."""
    subtype = kind.rpartition("/")[2].replace("jpeg", "jpg")
    return f".{subtype}" if kind in ATTACHABLE else ".txt"


def is_sha256(text: str) -> bool:
    """Return whether a text is a SHA-256 in lower-case hexadecimal."""
    return _SHA256.fullmatch(text) is not None
