"""Times as people read them, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.types.clock import iso_time, iso_time_if, moment_of


@given(st.integers(0, 253_402_300_799_999))
def test_a_moment_is_read_back_to_the_millisecond(ms: int) -> None:
    assert moment_of(iso_time(ms)) == ms
    assert iso_time_if(ms) == iso_time(ms)


def test_any_offset_is_read_and_none_is_refused() -> None:
    assert moment_of("1970-01-01T01:00:00.250+01:00") == 250
    assert iso_time_if(None) is None
    with pytest.raises(ValueError, match="offset"):
        moment_of("1970-01-01T00:00:00")
