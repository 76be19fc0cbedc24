"""Texts for random machines: every author has letters that nobody else types.

Each alphabet holds characters of one, two, three and four bytes, emoji that are joined, and marks
that combine; newlines, joiners and selectors belong to everybody.
"""

from __future__ import annotations

import random

AUTHORS = 6
"""How many alphabets there are."""

ZWJ, SELECTOR = "\u200d", "\ufe0f"
"""Characters that, like line ends, tell nothing about who typed them."""

_RANGES = (
    range(ord("a"), ord("y")),  # one byte
    range(0x0400, 0x0448),  # two bytes
    range(0x0300, 0x0330),  # two bytes, combining
    range(0x4E00, 0x4E78),  # three bytes
    range(0xE000, 0xE030),  # three bytes, private use
    range(0x1F600, 0x1F648),  # four bytes, a surrogate pair
    range(0x20000, 0x20030),  # four bytes, ideographs beyond the first plane
)
_WIDE = _RANGES[5]
_COMBINING = _RANGES[2]


def _share(code_points: range, author: int) -> list[str]:
    return [chr(one) for one in code_points[author::AUTHORS]]


class Alphabet:
    """Characters that one author types."""

    def __init__(self, author: int) -> None:
        self.author = author
        self._letters = [_share(one, author) for one in _RANGES]
        self._wide = _share(_WIDE, author)
        self._marks = _share(_COMBINING, author)

    def letter(self, rng: random.Random) -> str:
        return rng.choice(rng.choice(self._letters))

    def word(self, rng: random.Random, longest: int = 5) -> str:
        """Some pieces in a row; now and then nothing at all."""
        return "".join(self._piece(rng) for _ in range(rng.randint(0, longest)))

    def some(self, rng: random.Random, longest: int = 5) -> str:
        """As `word`, and never nothing."""
        return self.letter(rng) + self.word(rng, longest - 1)

    def lines(self, rng: random.Random, most: int = 3) -> str:
        """Whole lines, the last one with or without its newline."""
        lines = [self.word(rng, 3).replace("\n", "") for _ in range(rng.randint(0, most))]
        return "\n".join(lines) + rng.choice(("", "\n"))

    def _piece(self, rng: random.Random) -> str:
        match rng.randrange(12):
            case 0 | 1:
                return "\n"
            case 2:
                return "\r\n"
            case 3:
                return ZWJ.join(rng.choice(self._wide) for _ in range(rng.randint(2, 3)))
            case 4:
                return rng.choice(self._letters[0]) + rng.choice(self._marks)
            case 5:
                return rng.choice(self._wide) + SELECTOR
            case _:
                return self.letter(rng)


_AUTHOR_OF = {
    char: author
    for author in range(AUTHORS)
    for letters in (_share(one, author) for one in _RANGES)
    for char in letters
}


def author_of(char: str) -> int | None:
    """Return the author whose alphabet a character is from; None if it is shared."""
    return _AUTHOR_OF.get(char)
