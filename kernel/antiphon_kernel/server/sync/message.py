"""A whole WebSocket message as the server writes it: one frame, not masked, not compressed."""

from __future__ import annotations

from typing import Final

_TEXT: Final = 0x81
_BINARY: Final = 0x82


def binary_message(payload: bytes) -> bytes:
    """A binary message with its header."""
    return _message(_BINARY, payload)


def text_message(text: str) -> bytes:
    """A text message with its header."""
    return _message(_TEXT, text.encode())


def _message(kind: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        return bytes((kind, size)) + payload
    if size < 65_536:
        return bytes((kind, 126)) + size.to_bytes(2) + payload
    return bytes((kind, 127)) + size.to_bytes(8) + payload
