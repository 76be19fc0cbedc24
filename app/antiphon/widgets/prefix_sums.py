"""Sums over the first of many numbers, which change, come and go anywhere."""

from __future__ import annotations

from collections.abc import Iterable


class PrefixSums:
    """A list of numbers from 0 on, in chunks; every question costs the square root of it."""

    def __init__(self, values: Iterable[int] = (), *, chunk: int = 512) -> None:
        self._size = chunk
        self._chunks: list[list[int]] = []
        self._totals: list[int] = []
        self.total = 0
        self.splice(0, 0, values)

    def __getitem__(self, index: int) -> int:
        for chunk in self._chunks:
            if index < len(chunk):
                return chunk[index]
            index -= len(chunk)
        raise IndexError("no number there")

    def before(self, index: int) -> int:
        """Sum of the numbers in front of `index`, which may be the count."""
        total = 0
        for number, chunk in enumerate(self._chunks):
            if index < len(chunk):
                return total + sum(chunk[:index])
            index -= len(chunk)
            total += self._totals[number]
        return total

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
                        return index, position
                    position -= value
                    index += 1
                return index, position
            position -= self._totals[number]
            index += len(chunk)
        return 0, position

    def splice(self, start: int, stop: int, values: Iterable[int]) -> None:
        """Replace the numbers from `start` to `stop` (exclusive)."""
        new = list(values)
        if not self._chunks:
            self._rebuild(0, 0, new)
            return
        first, low = self._locate(start)
        last, high = self._locate(stop)
        if first == last and len(self._chunks[first]) + len(new) < 2 * self._size:
            chunk = self._chunks[first]
            grown = sum(new) - sum(chunk[low:high])
            chunk[low:high] = new
            self._totals[first] += grown
            self.total += grown
            if not chunk:
                del self._chunks[first], self._totals[first]
            return
        new = self._chunks[first][:low] + new + self._chunks[last][high:]
        self._rebuild(first, last + 1, new)

    def _locate(self, index: int) -> tuple[int, int]:
        """Chunk and place inside it; the end of the last chunk for what is behind everything."""
        for number, chunk in enumerate(self._chunks):
            if index < len(chunk):
                return number, index
            if number == len(self._chunks) - 1:
                return number, len(chunk)
            index -= len(chunk)
        return 0, 0

    def _rebuild(self, first: int, stop: int, values: list[int]) -> None:
        """Replace whole chunks by new ones that hold `values`."""
        chunks = [values[at : at + self._size] for at in range(0, len(values), self._size)]
        self.total += sum(values) - sum(self._totals[first:stop])
        self._chunks[first:stop] = chunks
        self._totals[first:stop] = [sum(chunk) for chunk in chunks]
