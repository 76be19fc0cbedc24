"""From what people and scripts write for an id to the id.

Contexts go by label or id, principals by username or id, blocks by `context.principal.seq` in any
mixture of the two. A full id is that id whatever else is called so; an exact name beats the
beginning or end of an id; what several ids begin or end with is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import LISTED, join_names, quote, truncate

_HEX = re.compile(r"[0-9a-f]{1,32}")
_FULL = 32
"""Digits of a full id."""
_SEQ = re.compile(r"0|[1-9][0-9]{0,15}")


def resolve(reference: str, names: Mapping[str, str], *, what: str, missing: ErrorCode) -> str:
    """The id that `reference` stands for.

    Args:
        names: name to id, of everything there is.
        what: the word for it in errors.
        missing: the code if there is no such thing.

    Raises:
        AntiphonError: `missing` or ambiguous_id.
    """
    if len(reference) == _FULL and reference in names.values():
        return reference
    if reference in names:
        return names[reference]
    matches = []
    if _HEX.fullmatch(reference):
        matches = [
            (name, one)
            for name, one in names.items()
            if one.startswith(reference) or one.endswith(reference)
        ]
    if len(matches) == 1:
        return matches[0][1]
    if matches:
        candidates = [f"{one} ({name})" for name, one in matches]
        raise AntiphonError(
            ErrorCode.AMBIGUOUS_ID,
            f"{quote(reference)} is the start or end of {len(matches)} {what} ids:"
            f" {join_names(candidates)}. Give more of it.",
            candidates=[one for _, one in matches[:LISTED]],
        )
    raise AntiphonError(
        missing,
        f"There is no {what} {quote(reference)}. Known: {join_names(sorted(names))}.",
        reference=truncate(reference),
    )


def split_block(reference: str) -> tuple[str, str, int]:
    """The three parts of a block reference.

    Raises:
        AntiphonError: block_not_found if it has another shape.
    """
    parts = reference.split(".")
    if len(parts) != 3 or not all(parts) or not _SEQ.fullmatch(parts[2]):
        raise AntiphonError(
            ErrorCode.BLOCK_NOT_FOUND,
            f"{quote(reference)} is not a block id: expected context.principal.number,"
            " as block.list prints it.",
            reference=truncate(reference),
        )
    return parts[0], parts[1], int(parts[2])
