"""Time as a value that is passed in, so that tests decide what time it is."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from antiphon_kernel.types.quoting import quote

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_LAST_MS: Final = (datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC) - _EPOCH) // _MS
"""The last moment that can be written."""


class Clock(Protocol):
    """Wall time for records, monotonic time for gaps and timeouts."""

    def now_ms(self) -> int:
        """Milliseconds since the Unix epoch."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""


class SystemClock:
    """The clock of this machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


def iso_time(ms: int) -> str:
    """Milliseconds since the epoch as ISO 8601 in UTC, milliseconds kept, `Z` at the end.

    A moment before 1970 or after 9999, which a clock that is wrong has told, becomes the nearest
    one that can be written.
    """
    moment = _EPOCH + min(max(ms, 0), _LAST_MS) * _MS
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_time_if(ms: int | None) -> str | None:
    """The same of a moment that there may not be."""
    return None if ms is None else iso_time(ms)


def moment_of(text: str) -> int:
    """Milliseconds since the epoch, of any time in ISO 8601 that says its offset from UTC.

    Raises:
        ValueError: if it is something else, or a time before 1970 or after 9999.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{quote(text)} does not say its offset from UTC")
    ms = (moment - _EPOCH) // _MS
    if not 0 <= ms <= _LAST_MS:
        raise ValueError(f"{quote(text)} is not between 1970 and 9999")
    return ms


def moment_or_start(text: str) -> int:
    """Return what `moment_of` does; 0 if what is stored is no time."""
    try:
        return moment_of(text)
    except ValueError:
        return 0


def is_iso_time(text: str) -> bool:
    """Return whether a text is a time exactly as `iso_time` writes it."""
    try:
        return iso_time(moment_of(text)) == text
    except ValueError:
        return False
