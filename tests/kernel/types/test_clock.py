"""Times as people read them, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.types.clock import is_iso_time, iso_time, iso_time_if, moment_of


@given(st.integers(0, 253_402_300_799_999))
def test_moment_is_read_back_to_the_millisecond(ms: int) -> None:
    assert moment_of(iso_time(ms)) == ms
    assert iso_time_if(ms) == iso_time(ms) and is_iso_time(iso_time(ms))


def test_moment_of_accepts_any_offset_and_rejects_its_absence() -> None:
    assert moment_of("1970-01-01T01:00:00.250+01:00") == 250
    assert iso_time_if(None) is None
    with pytest.raises(ValueError, match="offset"):
        moment_of("1970-01-01T00:00:00")


@pytest.mark.parametrize("ms", [-(10**18), -1, 253_402_300_800_000, 2**63 - 1])
def test_iso_time_outside_1970_to_9999_is_the_nearest_moment_inside(ms: int) -> None:
    assert iso_time(ms) == iso_time(0 if ms < 0 else 253_402_300_799_999)


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999Z", "9999-12-31T23:59:59-23:59"]
)
def test_moment_of_a_time_outside_1970_to_9999_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="between 1970 and 9999"):
        moment_of(text)


@pytest.mark.parametrize(
    "text", ["", "now", "2026-01-01", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000+00:00"]
)
def test_is_iso_time_does_not_hold_of_other_texts(text: str) -> None:
    assert not is_iso_time(text)
