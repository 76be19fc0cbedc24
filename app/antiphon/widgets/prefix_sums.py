"""Sums over the first of many numbers, which change, come and go anywhere."""

from __future__ import annotations

from collections.abc import Iterable


class PrefixSums:
    """A list of numbers from 0 on, in chunks; every question costs the square root of it."""

    def __init__(self, values: Iterable[int] = (), *, chunk: int = 512) -> None:
        self._size = chunk
        self._chunks: list[list[int]] = [[]]
        self._totals = [0]
        self.splice(0, 0, values)

    @property
    def total(self) -> int:
        return sum(self._totals)

    def __getitem__(self, index: int) -> int:
        number, at = self._locate(index)
        return self._chunks[number][at]

    def before(self, index: int) -> int:
        """Sum of the numbers in front of `index`, which may be the count."""
        number, at = self._locate(index)
        return sum(self._totals[:number]) + sum(self._chunks[number][:at])

    def find(self, position: int) -> tuple[int, int]:
        """The number that reaches over `position`, and how far that is into it.

        The last number if `position` is behind everything; (0, position) if there are no numbers.
        """
        index = 0
        last = len(self._chunks) - 1
        for number, chunk in enumerate(self._chunks):
            if position < self._totals[number] or number == last:
                for value in chunk[:-1]:
                    if position < value:
                        break
                    position -= value
                    index += 1
                break
            position -= self._totals[number]
            index += len(chunk)
        return index, position

    def splice(self, start: int, stop: int, values: Iterable[int]) -> None:
        """Replace the numbers from `start` to `stop` (exclusive)."""
        (first, low), (last, high) = self._locate(start), self._locate(stop)
        new = [*self._chunks[first][:low], *values, *self._chunks[last][high:]]
        size = len(new) // (len(new) // self._size + 1) + 1
        chunks = [new[at : at + size] for at in range(0, len(new), size)]
        self._chunks[first : last + 1] = chunks
        self._totals[first : last + 1] = map(sum, chunks)
        if not self._chunks:
            self._chunks, self._totals = [[]], [0]

    def _locate(self, index: int) -> tuple[int, int]:
        """Chunk and place inside it; the end of the last chunk for what is behind everything."""
        last = len(self._chunks) - 1
        for number, chunk in enumerate(self._chunks[:last]):
            if index < len(chunk):
                return number, index
            index -= len(chunk)
        return last, min(index, len(self._chunks[last]))
