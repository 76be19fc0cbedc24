"""Requests that are sent again: when, how often, and how everybody sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.providers.events import ErrorKind, ProviderError
from antiphon_kernel.turns.block_writer import BlockWriter
from antiphon_kernel.types.block_metadata import RETRY
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import BlockKind, Status

ATTEMPTS: Final = 4
"""How often a request is sent again at most."""

LONGEST_DELAY: Final = 300.0
"""Seconds; if a provider asks for more, the turn ends instead."""

RETRIED: Final = (ErrorKind.RATE_LIMITED, ErrorKind.OVERLOADED, ErrorKind.UNREACHABLE)
"""Kinds of errors after which the same request may succeed."""

_FIRST_DELAY: Final = 2.0


def delay_before(attempt: int, error: ProviderError) -> float | None:
    """Return the seconds to wait before an attempt, counted from 1; None if there is none."""
    if error.kind not in RETRIED or attempt > ATTEMPTS:
        return None
    delay = error.retry_after
    if delay is None:
        return float(_FIRST_DELAY * 2 ** (attempt - 1))
    return max(0.0, delay) if delay <= LONGEST_DELAY else None


@dataclass(eq=False, slots=True)
class RetryNotice:
    """The block that says that a request is sent again; models are not given it."""

    writer: BlockWriter
    prompt: str
    sleep: Callable[[float], Awaitable[None]]
    _block: str | None = None
    _reason: str = ""
    """Message of the error that the last attempt ended with."""

    async def wait(self, attempt: int, error: ProviderError, seconds: float) -> None:
        """Say why and when the request is sent again, and wait until then."""
        writer = self.writer
        if self._block is None:
            self._block = await writer.create(BlockKind.ERROR, self.prompt)
        said = {
            "attempt": attempt,
            "attempts": ATTEMPTS,
            "kind": str(error.kind),
            "seconds": seconds,
            "until": iso_time(writer.kernel.clock.now_ms() + round(seconds * 1000)),
        }
        reason = error.message.rstrip()
        if not reason.endswith((".", "!", "?")):
            reason += "."
        before = writer.context.document.text(self._block)
        if reason == self._reason:
            before, begin = before.removesuffix("\n"), " "
        else:
            begin = f"{reason} "
        self._reason = reason
        text = f"{before}{begin}Retrying in {seconds:g} s ({attempt} of {ATTEMPTS}).\n"
        writer.describe(self._block, text=text, excluded=True, metadata={RETRY: said})
        await self.sleep(seconds)

    async def end(self) -> None:
        """The provider has answered."""
        if self._block is not None:
            await self.writer.finish(self._block, Status.DONE)
            self._block = None
            self._reason = ""
