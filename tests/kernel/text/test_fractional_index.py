"""Order keys sort strictly between their neighbours, or are refused."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.text.fractional_index import DIGITS, NoKeyBetweenError, key_between

words = st.text(alphabet=DIGITS, min_size=1, max_size=6)


@pytest.mark.parametrize("at_end", [True, False])
def test_adding_at_either_end_does_not_grow_the_key(at_end: bool) -> None:
    key = key_between(None, None)
    for _ in range(5_000):
        beside = key_between(key, None) if at_end else key_between(None, key)
        assert beside > key if at_end else beside < key
        key = beside
    assert len(key) <= 4


@pytest.mark.parametrize("upwards", [0, 0.5, 1])
def test_thousand_bisections_stay_under_200_characters(upwards: float) -> None:
    """`upwards`: how often the upper half is taken."""
    rng = random.Random(7)
    low, high = key_between(None, None), key_between(key_between(None, None), None)
    for _ in range(1_000):
        middle = key_between(low, high)
        assert low < middle < high
        assert len(middle) <= 200
        low, high = (middle, high) if rng.random() < upwards else (low, middle)


def test_two_thousand_principals_insert_anywhere_at_once() -> None:
    """Nobody sees what the others of the same round insert, so keys may be equal: ids decide."""
    rng = random.Random(12)
    blocks: list[tuple[str, str]] = []
    for _ in range(40):
        seen = list(blocks)
        for _ in range(50):
            at = rng.randint(0, len(seen))
            low = seen[at - 1][0] if at else None
            behind = (seen[place][0] for place in range(at, len(seen)))
            high = next((key for key in behind if low is None or key > low), None)
            key = key_between(low, high)
            assert low is None or low < key
            assert high is None or key < high
            blocks.append((key, f"{rng.getrandbits(128):032x}"))
        blocks.sort()
    assert max(len(key) for key, _ in blocks) <= 40


def test_known_hard_pair_has_a_key_between() -> None:
    assert "Az" < key_between("Az", "B") < "B"


@pytest.mark.parametrize(
    ("low", "high"),
    [("a", "a0"), ("a1", "a1"), ("b", "a"), ("a-1", None)],
    ids=["adjacent", "equal", "swapped", "outside the alphabet"],
)
def test_key_between_neighbours_without_room_or_order_raises(low: str, high: str | None) -> None:
    with pytest.raises(NoKeyBetweenError):
        key_between(low, high)


@given(words | st.none(), words | st.none())
def test_key_between_any_two_keys_is_strictly_between_or_raises(
    low: str | None, high: str | None
) -> None:
    try:
        key = key_between(low, high)
    except NoKeyBetweenError:
        return
    assert low is None or low < key
    assert high is None or key < high
