"""Length of a text in UTF-16 units, in which Yjs counts the ids of characters."""

from __future__ import annotations


def utf16_length(text: str) -> int:
    """UTF-16 units of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
