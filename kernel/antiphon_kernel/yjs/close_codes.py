"""Why a kernel closes a WebSocket, as the code says it."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

SHUTTING_DOWN: Final = "The kernel is shutting down."
"""The reason that a kernel gives with `RESTART` when it ends."""


class CloseCode(IntEnum):
    """Codes from 4400 to 4499 mean that trying again in the same way cannot help."""

    NORMAL = 1000
    UNSUPPORTED_DATA = 1003
    TOO_LARGE = 1009
    INTERNAL_ERROR = 1011
    RESTART = 1012
    TRY_AGAIN_LATER = 1013
    MALFORMED = 4400
    UNAUTHORISED = 4401
    REFUSED = 4403
    NOT_FOUND = 4404
    OTHER_EPOCH = 4409
    REVOKED = 4410
    """The credential that let the client in has been revoked."""
    KICKED = 4411
    """The client's principal is to stay away for a while."""
    STORAGE_LOST = 4412
    """A file of the kernel has been deleted or replaced, so it saves nothing any more."""
    TOO_MANY_WRONG_TOKENS = 4429
    ROLE_CHANGED = 4500
    """The client's principal has another role now: it may come again at once."""
    MOVED = 4501
    """Another kernel has the context from now on: the client may come again at once."""


def is_final(code: int) -> bool:
    """Return whether connecting again in the same way would end in the same way."""
    return 4400 <= code < 4500
