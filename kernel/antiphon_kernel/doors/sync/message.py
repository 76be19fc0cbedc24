"""A whole WebSocket message as the server writes it: one frame, not masked, not compressed."""

from __future__ import annotations

from typing import Final

_BINARY: Final = 0x82


def binary_message(payload: bytes) -> bytes:
    """A binary message with its header."""
    size = len(payload)
    if size < 126:
        return bytes((_BINARY, size)) + payload
    if size < 65_536:
        return bytes((_BINARY, 126)) + size.to_bytes(2) + payload
    return bytes((_BINARY, 127)) + size.to_bytes(8) + payload
