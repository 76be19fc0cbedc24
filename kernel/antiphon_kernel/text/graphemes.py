"""Whole graphemes: what a person sees as one character is never cut in two."""

from __future__ import annotations

import regex

from antiphon_kernel.text.splice_diff import common_prefix, common_suffix

_GRAPHEME = regex.compile(r"\X")


def boundary_before(text: str, offset: int) -> int:
    """Return the last offset up to `offset` that is between two graphemes."""
    if offset <= 0 or offset >= len(text):
        return max(0, min(offset, len(text)))
    # Behind a line feed there is always one, so no more than a line is looked at.
    at = text.rfind("\n", 0, offset) + 1
    while at < offset:
        found = _GRAPHEME.match(text, at)
        if found is None or found.end() > offset:
            return at
        at = found.end()
    return at


def boundary_after(text: str, offset: int) -> int:
    """Return the first offset from `offset` on that is between two graphemes."""
    before = boundary_before(text, offset)
    found = _GRAPHEME.match(text, before) if before != offset else None
    return found.end() if found is not None else before


def common_ends(old: str, new: str) -> tuple[int, int]:
    """Return the lengths of the longest beginning and end that two texts share in whole graphemes.

    The two do not overlap in either text.
    """
    start = common_prefix(old, new)
    while (cut := min(boundary_before(old, start), boundary_before(new, start))) != start:
        start = cut
    end = common_suffix(old, new, start)
    while end:
        kept = min(
            len(old) - boundary_after(old, len(old) - end),
            len(new) - boundary_after(new, len(new) - end),
        )
        if kept == end:
            break
        end = kept
    return start, end
