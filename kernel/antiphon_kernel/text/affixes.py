"""How far two texts are equal, from either end.

Compares slices by halves: the loops run in C, and few times.
"""

from __future__ import annotations


def common_prefix(first: str, second: str) -> int:
    """How many code points the texts have in common at their start."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(first: str, second: str, prefix: int) -> int:
    """How many they have in common at their end, behind a common start of `prefix`."""
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
