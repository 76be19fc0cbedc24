"""Checks within one document."""

from __future__ import annotations

from antiphon_kernel.document.document import Document
from antiphon_kernel.document.header import FIELDS
from antiphon_kernel.limits import DEFAULT_LIMITS
from antiphon_kernel.maintenance.findings import Check, ContextReport
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.validation import check_field
from antiphon_kernel.yjs.state_vector import decode_state_vector


def check_document(document: Document, report: ContextReport) -> None:
    """Check header fields, parents and answers."""
    _check_fields(document, report)
    _check_parents(document, report)
    for block in document.block_ids():
        header = document.header(block)
        if header.kind != BlockKind.TOOL_RESULT:
            continue
        if header.parent is None or header.parent not in document:
            report.find(Check.ANSWERS, f"the tool result {block} answers no call")
            continue
        call = document.header(header.parent)
        if call.kind != BlockKind.TOOL_CALL or call.tool_call_id != header.tool_call_id:
            report.find(
                Check.ANSWERS, f"the tool result {block} answers {call.id}, which is not its call"
            )


def _check_fields(document: Document, report: ContextReport) -> None:
    for block in document.block_ids():
        for name, stored in document.stored_fields(block).items():
            if name not in FIELDS:
                continue
            try:
                check_field(name, stored, DEFAULT_LIMITS)
            except AntiphonError as error:
                report.find(Check.HEADER, f"block {block}: {error.message.removesuffix('.')}")


def _check_parents(document: Document, report: ContextReport) -> None:
    sound: set[str] = set()
    for block in document.block_ids():
        chain: list[str] = []
        above: str | None = block
        seen: set[str] = set()
        while above is not None and above not in sound:
            if above not in document:
                report.find(Check.PARENTS, f"block {chain[-1]} has the parent {above}, not there")
                break
            if above in seen:
                report.find(Check.PARENTS, f"block {above} is its own ancestor")
                break
            seen.add(above)
            chain.append(above)
            above = document.header(above).parent
        sound.update(chain)


def difference(one: Document, other: Document) -> str | None:
    """In what two documents differ; None if they are equal."""
    vectors = decode_state_vector(one.state_vector()), decode_state_vector(other.state_vector())
    if vectors[0] != vectors[1]:
        return "they have seen different items"
    if list(one.block_ids()) != list(other.block_ids()):
        return "they have different blocks, or another order"
    for block in one.block_ids():
        if one.header(block) != other.header(block):
            return f"the header of block {block}"
        if one.text(block) != other.text(block):
            return f"the text of block {block}"
    if (one.epoch, one.label) != (other.epoch, other.label):
        return "the epoch or the label"
    return None
