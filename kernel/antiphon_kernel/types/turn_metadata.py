"""Keys of a block's `metadata` that turns of models write or read."""

from __future__ import annotations

from typing import Final

MAX_ROUNDS: Final = "max_rounds"
"""Of a message: rounds that a turn which answers it may have, if fewer than others."""

USAGE: Final = "usage"
"""Of the last block of a round: the tokens that the provider counted, and their price."""

RETRY: Final = "retry"
"""Of a block of kind error: the request is sent again; `attempt` of `attempts`, `kind` of the
error, `seconds` and the time `until` then. The block is pending until the provider answers."""

ERROR_KIND: Final = "error_kind"
"""Of a block of kind error that ends a turn: kind of the provider's error, or of the limit."""

CAN_RETRY: Final = "can_retry"
"""Of a block of kind error that ends a turn: true if `turn.retry` may go on with it."""

CALL_SIGNATURE: Final = "call_signature"
"""Of a call: text of the provider's that has to come back with it."""
