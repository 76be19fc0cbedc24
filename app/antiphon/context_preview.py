"""Preview of a long context: some of its blocks, shown until the document is here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from antiphon_kernel.document.document import Document
from antiphon_kernel.document.header import ENUMS, known_value
from antiphon_kernel.types.ids import RandomIds
from antiphon_kernel.types.records import BlockHeader, Member

LONG_CONTEXT: Final = 500
"""Blocks up to which a context is there as soon as a preview of it would be."""

_SHOWN: Final = BlockHeader._fields


@dataclass(frozen=True, slots=True)
class ContextPreview:
    """Neighbouring blocks of a context, in a document of their own that nobody else has."""

    context: str
    """Id of the context."""
    me: str
    """Principal id of the person here."""
    document: Document


def read_preview(page: Mapping[str, Any], caller: Mapping[str, Any]) -> ContextPreview | None:
    """Return the preview that `context.page` and `session.whoami` answer; None if it is short.

    Raises:
        ValueError: if they are not what these tools answer.
    """
    try:
        if page["count"] <= LONG_CONTEXT or not page["blocks"]:
            return None
        document = Document(RandomIds().client_id())
        with document.transaction("page"):
            for one in page["members"]:
                member = Member(one["principal"], one["username"], one["kind"], int(one["colour"]))
                document.set_member(member)
            for number, block in enumerate(page["blocks"]):
                document.create_block(_header(block, number), block["content"])
        return ContextPreview(str(page["context_id"]), str(caller["principal"]), document)
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"no page of a context: {error!r}") from error


def _header(block: Mapping[str, Any], number: int) -> BlockHeader:
    """The header of a block as a page shows it, which leaves out its order key."""
    values = {name: block[name] for name in _SHOWN if name in block}
    for name in ENUMS:
        values[name] = known_value(name, values[name])
    if "input" in values:
        values["input"] = json.dumps(values["input"], ensure_ascii=False)
    values |= {"id": block["block_id"], "parent": block.get("parent_id"), "order": f"{number:06}"}
    return BlockHeader(**values)
