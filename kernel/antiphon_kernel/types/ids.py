"""Identity: typed UUIDv7 ids and the one printable form of a block id.

A block id is ``context.principal.seq``: 32 lower-case hex digits, a dot, 32 lower-case hex digits,
a dot, a decimal number that counts per (context, principal). It is the key of the block in the
CRDT's ``blocks`` map and what every tool returns and accepts.
"""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import NewType, Protocol

KernelId = NewType("KernelId", str)
ContextId = NewType("ContextId", str)
PrincipalId = NewType("PrincipalId", str)
SessionId = NewType("SessionId", str)

_NAMESPACE = uuid.UUID("7b6f3f0a-7c58-5f0e-9c55-5a1f1d0c7a11")

SYSTEM = PrincipalId(uuid.uuid5(_NAMESPACE, "system").hex)
"""The principal of everything the kernel itself writes: the same in every kernel."""

NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]*")
"""What a label or a username looks like."""

_HEX32 = re.compile(r"[0-9a-f]{32}")

DRAFT_SEQ_MIN = 2**32
"""A client that creates a block by itself draws its seq from here up to `DRAFT_SEQ_LIMIT`."""

DRAFT_SEQ_LIMIT = 2**53


def is_name(text: str) -> bool:
    """Whether `text` may be a context label or a username."""
    return NAME_PATTERN.fullmatch(text) is not None


class IdSource(Protocol):
    """Where new ids come from; tests pass a counting one."""

    def uuid7(self) -> str:
        """A fresh UUIDv7 as 32 hex digits."""
        ...

    def client_id(self) -> int:
        """A fresh CRDT client id: 32 bits, as Yjs draws them (it stands in every item)."""
        ...


class RandomIds:
    """Ids from the clock and the operating system's randomness."""

    def __init__(self, now_ms: Callable[[], int] | None = None) -> None:
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)

    def uuid7(self) -> str:
        value = (self._now_ms() & (2**48 - 1)) << 80
        value |= int.from_bytes(os.urandom(10), "big")
        value &= ~(0xF << 76)
        value |= 0x7 << 76
        value &= ~(0x3 << 62)
        value |= 0x2 << 62
        return f"{value:032x}"

    def client_id(self) -> int:
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
        parts = text.split(".")
        if (
            len(parts) != 3
            or not _HEX32.fullmatch(parts[0])
            or not _HEX32.fullmatch(parts[1])
            or not re.fullmatch(r"0|[1-9][0-9]{0,15}", parts[2])
        ):
            raise ValueError(f"not a full block id: {text!r}")
        return cls(ContextId(parts[0]), PrincipalId(parts[1]), int(parts[2]))
