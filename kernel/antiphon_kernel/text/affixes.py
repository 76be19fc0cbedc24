"""Length of the common prefix and suffix of two texts.

Compares slices by halves: the loops run in C, and few times.
"""

from __future__ import annotations


def common_prefix(first: str, second: str) -> int:
    """Return the length of the common prefix in code points."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(first: str, second: str, prefix: int) -> int:
    """Return the common suffix's length in code points, behind a common start of `prefix`."""
    low, high = 0, min(len(first), len(second)) - prefix
    while low < high:
        middle = (low + high + 1) // 2
        if (
            first[len(first) - middle : len(first) - low]
            == (second[len(second) - middle : len(second) - low])
        ):
            low = middle
        else:
            high = middle - 1
    return low
