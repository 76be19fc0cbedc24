"""Common part of all tools that write content: permission check and commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from antiphon_kernel.contexts import Context
from antiphon_kernel.document.content_writes import Write
from antiphon_kernel.document.schema import names_of
from antiphon_kernel.document.schema_validation import joined
from antiphon_kernel.kernel import Call
from antiphon_kernel.tools.sizes import check_items
from antiphon_kernel.tools.writing import WRITING, WriteResult, wait_persisted
from antiphon_kernel.types.enums import Role, Status
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.validation import reject_read_only

WRITING_CONTENT: Final = (*WRITING, ErrorCode.SCHEMA_VIOLATION)
"""What a tool that writes content can fail with."""


def path_to(section: str | None, field: str | None) -> str | None:
    """The path of a field in a section."""
    return section if field is None else joined(section, field)


async def write_content(
    call: Call, reference: str, operation: str, plan: Callable[[Context, str], Sequence[Write]]
) -> WriteResult:
    """Plan writes into the block that a request names; carry them out, all or nothing.

    Raises:
        AntiphonError: what finding the block and `plan` raise; read_only_field, read_only_section,
            storage_failed.
    """
    context, block = await call.block(reference)
    document, writes = context.document, plan(context, block)
    schema = document.schema(block)
    for one in writes:
        reject_read_only(call.actor, block, schema, names_of(one.path))
        check_items(context, one.items or 0)
    header = document.header(block)
    if header.role in (Role.MODEL, Role.TOOL) and header.status == Status.PENDING:
        call.kernel.writers.writes(call.actor, block)

    def write() -> None:
        for one in writes:
            one.apply()

    written = context.write(call.actor, operation, write, blocks=[block])
    return await wait_persisted(context, block, written)
