"""Read-only sections and fields, written only by the system and sources."""

from __future__ import annotations

from collections.abc import Sequence

from antiphon_kernel.document.schema import Schema, read_only_part
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import quote, truncate
from antiphon_kernel.types.records import Actor


def reject_read_only(actor: Actor, block: str, schema: Schema, names: Sequence[str]) -> None:
    """Refuse to write a place in a block's content, unless the actor is the system or a source.

    Raises:
        AntiphonError: read_only_field, read_only_section.
    """
    if actor.principal.kind in (PrincipalKind.SYSTEM, PrincipalKind.SOURCE):
        return
    found = read_only_part(schema, names)
    if found is None:
        return
    what = "field" if found.is_field else "section"
    raise AntiphonError(
        ErrorCode.READ_ONLY_FIELD if found.is_field else ErrorCode.READ_ONLY_SECTION,
        f"The {what} {quote(found.path)} of block {block} is read-only: only its source writes it.",
        block_id=block,
        path=truncate(found.path),
    )
