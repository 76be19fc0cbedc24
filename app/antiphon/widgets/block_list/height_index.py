"""Heights of cells in order: which cell is at a row, how many rows are above a cell.

Kept in chunks, so that every question and every change costs at most the square root of the number
of cells, also in the middle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class _HeightChunk:
    __slots__ = ("heights", "keys", "total")

    def __init__(self, keys: list[str], heights: list[int]) -> None:
        self.keys = keys
        self.heights = heights
        self.total = sum(heights)


class HeightIndex:
    """An ordered map from cell to height in rows. Rows and indexes count from 0."""

    def __init__(self, cells: Iterable[tuple[str, int]] = (), *, chunk: int = 256) -> None:
        """A chunk is made with `chunk` cells, and cut in two at twice as many."""
        self._size = chunk
        self._chunks: list[_HeightChunk] = []
        self._home: dict[str, _HeightChunk] = {}
        self.replace_all(cells)

    def replace_all(self, cells: Iterable[tuple[str, int]]) -> None:
        """Start afresh with these cells."""
        pairs = list(cells)
        self._chunks = [
            _HeightChunk(
                [key for key, _ in pairs[at : at + self._size]],
                [height for _, height in pairs[at : at + self._size]],
            )
            for at in range(0, len(pairs), self._size)
        ]
        self._home = {key: chunk for chunk in self._chunks for key in chunk.keys}
        self._total = sum(chunk.total for chunk in self._chunks)

    @property
    def total(self) -> int:
        """Rows of all cells together."""
        return self._total

    def __len__(self) -> int:
        return len(self._home)

    def __contains__(self, key: object) -> bool:
        return key in self._home

    def __iter__(self) -> Iterator[str]:
        for chunk in self._chunks:
            yield from chunk.keys

    def __getitem__(self, key: str) -> int:
        chunk = self._home[key]
        return chunk.heights[chunk.keys.index(key)]

    def index(self, key: str) -> int:
        """Return the number of cells before it. Raises KeyError."""
        home = self._home[key]
        count = 0
        for chunk in self._chunks:
            if chunk is home:
                break
            count += len(chunk.keys)
        return count + home.keys.index(key)

    def key(self, index: int) -> str:
        """The cell at an index. Raises IndexError."""
        if index < 0:
            index += len(self._home)
        if index >= 0:
            for chunk in self._chunks:
                if index < len(chunk.keys):
                    return chunk.keys[index]
                index -= len(chunk.keys)
        raise IndexError(f"no cell there: there are {len(self._home)}")

    def first(self) -> str | None:
        return self._chunks[0].keys[0] if self._chunks else None

    def last(self) -> str | None:
        return self._chunks[-1].keys[-1] if self._chunks else None

    def next(self, key: str) -> str | None:
        """The cell below. Raises KeyError."""
        chunk = self._home[key]
        at = chunk.keys.index(key) + 1
        if at < len(chunk.keys):
            return chunk.keys[at]
        below = self._chunks.index(chunk) + 1
        return self._chunks[below].keys[0] if below < len(self._chunks) else None

    def previous(self, key: str) -> str | None:
        """The cell above. Raises KeyError."""
        chunk = self._home[key]
        at = chunk.keys.index(key)
        if at:
            return chunk.keys[at - 1]
        index = self._chunks.index(chunk)
        return self._chunks[index - 1].keys[-1] if index else None

    def prefix(self, key: str) -> int:
        """Rows above the cell. Raises KeyError."""
        home = self._home[key]
        rows = 0
        for chunk in self._chunks:
            if chunk is home:
                break
            rows += chunk.total
        return rows + sum(home.heights[: home.keys.index(key)])

    def find(self, row: int) -> tuple[str, int] | None:
        """The cell at a row and the row inside it; the nearest end outside; None without cells.

        Cells of no height are never found inside.
        """
        if not self._chunks:
            return None
        if row < 0:
            return self._chunks[0].keys[0], row
        for chunk in self._chunks:
            if row < chunk.total:
                for key, height in zip(chunk.keys, chunk.heights, strict=True):
                    if row < height:
                        return key, row
                    row -= height
            row -= chunk.total
        last = self._chunks[-1]
        return last.keys[-1], row + last.heights[-1]

    def set(self, key: str, height: int) -> int:
        """Give a cell another height; returns how many rows it grew. Raises KeyError."""
        chunk = self._home[key]
        at = chunk.keys.index(key)
        grown = height - chunk.heights[at]
        if grown:
            chunk.heights[at] = height
            chunk.total += grown
            self._total += grown
        return grown

    def insert(self, key: str, height: int, *, after: str | None) -> None:
        """Put a new cell below `after`; None is the top. Raises KeyError and ValueError."""
        if key in self._home:
            raise ValueError(f"the cell {key} is there already")
        if not self._chunks:
            if after is not None:
                raise KeyError(after)
            self.replace_all([(key, height)])
            return
        chunk = self._chunks[0] if after is None else self._home[after]
        at = 0 if after is None else chunk.keys.index(after) + 1
        chunk.keys.insert(at, key)
        chunk.heights.insert(at, height)
        chunk.total += height
        self._home[key] = chunk
        self._total += height
        if len(chunk.keys) >= 2 * self._size:
            self._cut(chunk)

    def remove(self, key: str) -> None:
        """Raises KeyError."""
        chunk = self._home.pop(key)
        at = chunk.keys.index(key)
        height = chunk.heights[at]
        del chunk.keys[at], chunk.heights[at]
        chunk.total -= height
        self._total -= height
        if not chunk.keys:
            self._chunks.remove(chunk)

    def _cut(self, chunk: _HeightChunk) -> None:
        upper = _HeightChunk(chunk.keys[self._size :], chunk.heights[self._size :])
        del chunk.keys[self._size :], chunk.heights[self._size :]
        chunk.total -= upper.total
        self._chunks.insert(self._chunks.index(chunk) + 1, upper)
        for key in upper.keys:
            self._home[key] = upper
