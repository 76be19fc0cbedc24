"""Moments as people read them: kernels say them as `2026-11-21T10:05:00.000Z`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from typing import Final

from antiphon_kernel.types.quoting import count_of

_UNITS: Final = (3_600, "h"), (60, "min"), (1, "s")

_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


def format_absolute(text: str, now: datetime | None = None, zone: tzinfo | None = None) -> str:
    """`text` with its moments as a clock on the wall says them: `10:05`, `22 Nov 10:05`.

    `now` and `zone` are this machine's unless given.
    """
    today = (now or datetime.now()).astimezone(zone).date()

    def words(found: re.Match[str]) -> str:
        try:
            moment = datetime.fromisoformat(found.group()).astimezone(zone)
        except (ValueError, OverflowError):
            return found.group()
        if moment.date() == today:
            return f"{moment:%H:%M}"
        year = "" if moment.year == today.year else f" {moment.year}"
        return f"{moment.day} {moment:%b}{year} {moment:%H:%M}"

    return _MOMENT.sub(words, text)


def format_relative(text: str) -> str:
    """`text` with its moments to the minute, the same on every machine."""
    return _MOMENT.sub(lambda found: to_the_minute(found.group()), text)


def format_age(seconds: float) -> str:
    """Return how long ago something was: `just now`, `10 s ago`, `3 h ago`."""
    if seconds < 1:
        return "just now"
    if seconds >= 86_400:
        return f"{count_of(int(seconds // 86_400), 'day')} ago"
    size, unit = next(one for one in _UNITS if seconds >= one[0])
    return f"{int(seconds // size)} {unit} ago"


def format_duration(ms: int) -> str:
    """Return how long something took, at a glance: `0.3 s`, `1 min 57 s`, `2 h 5 min`."""
    if ms < 9_950:
        return f"{max(ms, 100) / 1_000:.1f} s"
    minutes, seconds = divmod(round(ms / 1_000), 60)
    if minutes >= 10:
        minutes, seconds = minutes + (seconds >= 30), 0
    hours, minutes = divmod(minutes, 60)
    parts = (hours, "h"), (minutes, "min"), (seconds, "s")
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def format_time_since(moment: str) -> str:
    return format_age((datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds())


def to_the_second(moment: str) -> str:
    """`2026-11-21 10:05:00Z`: the same on every machine, and short enough for a column."""
    return moment[:19].replace("T", " ") + "Z"


def to_the_minute(moment: str) -> str:
    """`2026-11-21 10:05Z`."""
    return moment[:16].replace("T", " ") + "Z"
