from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from antiphon.time_format import (
    format_absolute,
    format_age,
    format_duration,
    format_relative,
    to_the_minute,
    to_the_second,
)

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ("back at 2026-11-21T10:05:00.123Z.", "back at 11:05."),
        ("until 2026-11-21T23:30:00Z", "until 22 Nov 00:30"),
        ("since 2025-01-02T03:04:05Z or 2026-11-21T00:00:00Z", "since 2 Jan 2025 04:04 or 01:00"),
        ("no moment: 2026-13-45T99:99:99Z", "no moment: 2026-13-45T99:99:99Z"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"),
        ("verse 2026-11-21", "verse 2026-11-21"),
    ],
)
def test_moments_in_a_sentence_are_those_of_the_wall_clock(told: str, read: str) -> None:
    zone = timezone(timedelta(hours=1))
    assert format_absolute(told, NOW, zone) == read


def test_time_format_of_command_line_is_utc() -> None:
    assert to_the_second("2026-11-21T10:05:09.123Z") == "2026-11-21 10:05:09Z"
    assert to_the_minute("2026-11-21T10:05:09.123Z") == "2026-11-21 10:05Z"
    assert format_relative("at 2026-11-21T10:05:09.123Z.") == "at 2026-11-21 10:05Z."


@pytest.mark.parametrize(
    ("seconds", "read"),
    [
        (-3.0, "just now"),
        (10.9, "10 s ago"),
        (59.9, "59 s ago"),
        (60.0, "1 min ago"),
        (119.0, "1 min ago"),
        (3_599.0, "59 min ago"),
        (3_600.0, "1 h ago"),
        (86_400.0, "1 day ago"),
        (200_000.0, "2 days ago"),
    ],
)
def test_format_age_counts_in_the_largest_unit_that_has_passed(seconds: float, read: str) -> None:
    assert format_age(seconds) == read


@pytest.mark.parametrize(
    ("ms", "read"),
    [
        (8, "0.1 s"),
        (9_949, "9.9 s"),
        (9_950, "10 s"),
        (59_499, "59 s"),
        (59_500, "1 min"),
        (117_000, "1 min 57 s"),
        (599_000, "9 min 59 s"),
        (629_000, "10 min"),
        (630_000, "11 min"),
        (3_570_000, "1 h"),
        (7_500_000, "2 h 5 min"),
    ],
)
def test_format_duration_rounds_to_what_can_be_told_at_a_glance(ms: int, read: str) -> None:
    assert format_duration(ms) == read
