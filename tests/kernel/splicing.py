"""What splices mean."""

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
