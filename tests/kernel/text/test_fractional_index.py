"""Order keys sort strictly between their neighbours, or are refused."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.text.fractional_index import DIGITS, NoKeyBetweenError, key_between

words = st.text(alphabet=DIGITS, min_size=1, max_size=6)


def test_appending_at_the_end_does_not_grow_the_key() -> None:
    key = None
    for _ in range(20_000):
        following = key_between(key, None)
        assert key is None or following > key
        key = following
    assert key is not None
    assert len(key) <= 4


def test_prepending_does_not_grow_the_key() -> None:
    key = key_between(None, None)
    for _ in range(20_000):
        before = key_between(None, key)
        assert before < key
        key = before
    assert len(key) <= 4


@pytest.mark.parametrize("upwards", [True, False])
def test_a_thousand_bisections_at_one_place_stay_under_200_characters(upwards: bool) -> None:
    low, high = key_between(None, None), key_between(key_between(None, None), None)
    for _ in range(1_000):
        middle = key_between(low, high)
        assert low < middle < high
        low, high = (middle, high) if upwards else (low, middle)
        assert len(middle) <= 200


def test_a_thousand_bisections_from_side_to_side_stay_under_200_characters() -> None:
    rng = random.Random(7)
    for _ in range(20):
        low, high = key_between(None, None), key_between(key_between(None, None), None)
        for _ in range(1_000):
            middle = key_between(low, high)
            assert low < middle < high
            assert len(middle) <= 200
            low, high = (middle, high) if rng.random() < 0.5 else (low, middle)


def test_twenty_thousand_principals_insert_anywhere_at_once() -> None:
    """Nobody sees what the others of the same round insert, so keys may be equal: ids decide."""
    rng = random.Random(12)
    blocks: list[tuple[str, str]] = []
    for _ in range(200):
        seen = list(blocks)
        for _ in range(100):
            at = rng.randint(0, len(seen))
            low = seen[at - 1][0] if at else None
            high = next((key for key, _ in seen[at:] if low is None or key > low), None)
            key = key_between(low, high)
            assert low is None or low < key
            assert high is None or key < high
            blocks.append((key, f"{rng.getrandbits(128):032x}"))
        blocks.sort()
    assert len(blocks) == 20_000
    assert len({principal for _, principal in blocks}) == 20_000
    assert max(len(key) for key, _ in blocks) <= 40


def test_a_known_hard_pair_has_a_key_between() -> None:
    assert "Az" < key_between("Az", "B") < "B"


def test_where_nothing_fits_the_key_is_refused() -> None:
    with pytest.raises(NoKeyBetweenError):
        key_between("a", "a0")


def test_equal_or_swapped_neighbours_are_refused() -> None:
    with pytest.raises(NoKeyBetweenError):
        key_between("a1", "a1")
    with pytest.raises(NoKeyBetweenError):
        key_between("b", "a")


def test_characters_outside_the_alphabet_are_refused() -> None:
    with pytest.raises(NoKeyBetweenError):
        key_between("a-1", None)


@given(words | st.none(), words | st.none())
def test_any_two_keys_get_one_strictly_between_or_a_refusal(
    low: str | None, high: str | None
) -> None:
    try:
        key = key_between(low, high)
    except NoKeyBetweenError:
        return
    assert low is None or low < key
    assert high is None or key < high


def test_random_insertions_keep_the_order_of_an_oracle_list() -> None:
    rng = random.Random(5)
    keys: list[str] = []
    for _ in range(3_000):
        at = rng.randint(0, len(keys))
        low = keys[at - 1] if at else None
        high = keys[at] if at < len(keys) else None
        keys.insert(at, key_between(low, high))
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
