"""Identity: typed UUIDv7 ids and the one printable form of a block id.

A block id is ``context.principal.seq``: 32 lower-case hex digits, a dot, 32 lower-case hex digits,
a dot, a decimal number that counts per (context, principal). It is the key of the block in the
CRDT's ``blocks`` map and what every tool returns and accepts.

People and scripts also write something else for an id. Contexts go by label or id, principals by
username or id, blocks by `context.principal.seq` in any mixture of the two. A full id is that id
whatever else is called so; an exact name beats the beginning or end of an id; what several ids
begin or end with is an error.
"""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NewType

from antiphon_kernel.types.errors import AntiphonError, ErrorCode, block_not_found
from antiphon_kernel.types.quoting import LISTED, join_names, quote, truncate

_HEX32 = re.compile(r"[0-9a-f]{32}")
_PART_OF_ID = re.compile(r"[0-9a-f]{1,32}")
_SEQ = re.compile(r"0|[1-9][0-9]{0,15}")
_BLOCK_ID = re.compile(rf"([0-9a-f]{{32}})\.([0-9a-f]{{32}})\.({_SEQ.pattern})")


KernelId = NewType("KernelId", str)
"""Id of a kernel, the journal of one data folder: 32 lower-case hex digits, as of every kind.

They sort by the time at which they were drawn. An id of another kind is not accepted in its place.
"""

ContextId = NewType("ContextId", str)
"""Id of a context, which is one document."""

PrincipalId = NewType("PrincipalId", str)
"""Id of anyone who acts."""

SessionId = NewType("SessionId", str)
"""Id of one connection of one principal."""

_NAMESPACE = uuid.UUID("7b6f3f0a-7c58-5f0e-9c55-5a1f1d0c7a11")

SYSTEM = PrincipalId(uuid.uuid5(_NAMESPACE, "system").hex)
"""The principal of everything the kernel itself writes: the same in every kernel."""

SYSTEM_NAME: Final = "system"
"""Its username."""

DISK_NAME: Final = "disk"
"""The username of what other programs write into files."""

NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]*")
"""The form of a label or a username."""

NAME_LENGTH: Final = 64
"""Code points that it has at most."""

DRAFT_SEQ_MIN = 2**32
"""A client that creates a block by itself draws its seq from here up to `DRAFT_SEQ_LIMIT`."""

DRAFT_SEQ_LIMIT = 2**53


def is_id(text: str) -> bool:
    """Return whether `text` is an id, of whatever kind."""
    return _HEX32.fullmatch(text) is not None


def is_block_id(text: str) -> bool:
    """Return whether `text` is the full form of a block id."""
    return _BLOCK_ID.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Return whether `text` may be a context label or a username."""
    return len(text) <= NAME_LENGTH and NAME_PATTERN.fullmatch(text) is not None


def as_name(text: str) -> str:
    """Return `text` as a username, without what does not fit; empty if nothing fits."""
    return re.sub(r"[^a-z0-9_-]", "", text.lower()).lstrip("_-")[:NAME_LENGTH]


class IdSource:
    """Source of new ids from the clock and the operating system's randomness.

    Each sorts after those drawn before it, also within a millisecond and when the clock goes back.
    """

    def __init__(self, now_ms: Callable[[], int] | None = None) -> None:
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._last = (0, 0)

    def uuid7(self) -> str:
        """Return a fresh UUIDv7 as 32 hex digits."""
        now, low = self._now_ms() & (2**48 - 1), int.from_bytes(os.urandom(9), "big")
        before, counter = self._last
        if now > before:
            # The upper half of the counter is left free for what comes in this millisecond.
            counter = low >> 61 & 0x7FF
        else:
            now, counter = before, counter + 1
            if counter >= 2**12:
                now, counter = before + 1, 0
        self._last = now, counter
        value = now << 80 | 0x7 << 76 | counter << 64 | 0x2 << 62 | low & (2**62 - 1)
        return f"{value:032x}"

    def client_id(self) -> int:
        """Return a fresh CRDT client id: 32 bits, as Yjs draws them (it stands in every item)."""
        return int.from_bytes(os.urandom(4), "big") or 1


@dataclass(frozen=True, slots=True)
class BlockId:
    """Address of one block: the context it lives in, who created it, and a number."""

    context: ContextId
    principal: PrincipalId
    seq: int

    def __str__(self) -> str:
        return f"{self.context}.{self.principal}.{self.seq}"

    @classmethod
    def parse(cls, text: str) -> BlockId:
        """Read the full form.

        Raises:
            ValueError: if `text` is not two times 32 hex digits and a number, joined by dots.
        """
        parts = _BLOCK_ID.fullmatch(text)
        if parts is None:
            raise ValueError(f"not a full block id: {quote(text)}")
        return cls(ContextId(parts[1]), PrincipalId(parts[2]), int(parts[3]))


def moved_block(block: str, context: ContextId) -> str:
    """Return the full id of a block under another context: what a copy of it there is called."""
    return context + block[len(context) :]


def resolve(reference: str, names: Mapping[str, str], *, what: str, missing: ErrorCode) -> str:
    """The id that `reference` stands for.

    Args:
        names: name to id, of everything there is.
        what: the word for it in errors.
        missing: the code if there is no such thing.

    Raises:
        AntiphonError: `missing` or ambiguous_id.
    """
    if _HEX32.fullmatch(reference) and reference in names.values():
        return reference
    if reference in names:
        return names[reference]
    matches = []
    if _PART_OF_ID.fullmatch(reference):
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
        raise block_not_found(
            f"{quote(reference)} is not a block id: expected context.principal.number,"
            " as block.list prints it.",
            reference,
        )
    return parts[0], parts[1], int(parts[2])
