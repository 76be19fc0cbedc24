"""Check of a block's texts and of write access, before a tool reads or writes one."""

from __future__ import annotations

from antiphon_kernel.document.document import Document
from antiphon_kernel.document.schema import (
    each_part,
    is_text,
    names_of,
    part_at,
    path_of,
)
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import LISTED, join_names, quote
from antiphon_kernel.types.records import Actor
from antiphon_kernel.validation import reject_read_only


def check_text(document: Document, block: str, section: str | None) -> None:
    """Refuse a place of a block where there is no text.

    Raises:
        AntiphonError: invalid_params, with the paths that lead to one.
    """
    schema = document.schema(block)
    if is_text(part_at(schema, section)):
        return
    texts = [path_of(names) for names, part in each_part(schema) if is_text(part)]
    named = [path for path in texts if path is not None]
    if named:
        advice = f"name one of its texts as section: {join_names(named)}"
    elif texts:
        advice = "it is one text, so leave section out"
    else:
        advice = "it has no text at all"
    what = f"no text {quote(section)}" if section is not None else "no text of its own"
    raise AntiphonError(
        ErrorCode.INVALID_PARAMS,
        f"Block {block} has {what}: {advice}.",
        field="section",
        allowed=named[:LISTED],
    )


def check_writable(document: Document, actor: Actor, block: str, section: str | None) -> None:
    """Refuse a text that there is not, or that only the system and sources write.

    Raises:
        AntiphonError: invalid_params, read_only_field, read_only_section.
    """
    check_text(document, block, section)
    reject_read_only(actor, block, document.schema(block), names_of(section))
