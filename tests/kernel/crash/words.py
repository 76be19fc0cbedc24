"""Words that crash tests write: numbered, so that a hole or half a word shows."""

from __future__ import annotations

MARK = " 漢😀 "


def word(number: int) -> str:
    return f"{number}{MARK}"


def numbers(text: str) -> list[int]:
    """The numbers of a text made of whole words only.

    Raises:
        ValueError: if there is half a word in it.
    """
    if not text:
        return []
    if not text.endswith(MARK):
        raise ValueError(f"half a word: ...{text[-40:]!r}")
    return [int(one) for one in text.removesuffix(MARK).split(MARK)]


def pair(number: int) -> str:
    return f"{number} first 😀\n{number} second 漢\n"
