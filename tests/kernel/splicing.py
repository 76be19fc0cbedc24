"""Meaning of splices."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon_kernel.types.records import TextSplice


def apply_splices(text: str, splices: Iterable[TextSplice]) -> str:
    """`text` after the splices, one after the other; each must lie inside of what is there then."""
    for splice in splices:
        end = splice.offset + splice.deleted
        assert 0 <= splice.offset <= end <= len(text), splice
        text = text[: splice.offset] + splice.inserted + text[end:]
    return text


def apply_minimal(text: str, splices: Iterable[TextSplice]) -> str:
    """The same, where they must be sorted, apart, and touch only what changes."""
    behind = -1
    for splice in splices:
        removed = text[splice.offset : splice.offset + splice.deleted]
        assert splice.offset > behind
        assert removed or splice.inserted
        if removed and splice.inserted:
            assert removed[0] != splice.inserted[0]
            assert removed[-1] != splice.inserted[-1]
        text = apply_splices(text, [splice])
        behind = splice.offset + len(splice.inserted)
    return text
