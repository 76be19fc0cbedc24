"""Ids: kinds that do not stand in for each other, forms that are read back, order by time."""

from __future__ import annotations

import sys
import uuid
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.types.ids import (
    SYSTEM,
    BlockId,
    ContextId,
    IdSource,
    KernelId,
    PrincipalId,
    is_block_id,
    is_id,
    is_name,
)

hex_ids = st.uuids().map(lambda value: value.hex)
seqs = st.integers(0, 2**53 - 1)


@given(text=hex_ids)
def test_id_is_told_by_its_32_digits(text: str) -> None:
    assert is_id(text)


@pytest.mark.parametrize(
    "text",
    ["", "0" * 31, "0" * 33, "A" * 32, "g" * 32, "0" * 32 + "\n", str(uuid.UUID(int=1))],
)
def test_other_text_is_no_id(text: str) -> None:
    assert not is_id(text)


@given(context=hex_ids, principal=hex_ids, seq=seqs)
def test_block_id_is_read_back_from_its_full_form(context: str, principal: str, seq: int) -> None:
    one = BlockId(ContextId(context), PrincipalId(principal), seq)
    again = BlockId.parse(str(one))
    assert again == one and hash(again) == hash(one)
    assert is_block_id(str(one)) and str(one) == f"{context}.{principal}.{seq}"


@pytest.mark.parametrize("seq", ["", "-1", "01", "1.0", "1" * 17, "١", " 1", "1\n"])
def test_number_that_is_none_makes_no_block_id(seq: str) -> None:
    text = f"{'a' * 32}.{'b' * 32}.{seq}"
    assert not is_block_id(text)
    with pytest.raises(ValueError, match="not a full block id"):
        BlockId.parse(text)


def check_ids_of_other_kinds(kernel: KernelId, context: ContextId, principal: PrincipalId) -> None:
    """The type checker calls a comment unused if an id is accepted in the place of another."""
    BlockId(principal, principal, 1)  # type: ignore[arg-type]
    BlockId(context, kernel, 1)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200))
def test_ids_sort_by_the_time_they_were_drawn_at(steps: list[int]) -> None:
    """Also within a millisecond, and when the clock stands or goes back."""
    now = 1_700_000_000_000
    clock = iter([now := now + step - 1 for step in steps])
    ids = IdSource(lambda: next(clock))
    drawn = [ids.uuid7() for _ in steps]
    assert all(before < after for before, after in pairwise(drawn))


def test_uuid7_beyond_one_millisecond_stays_sorted() -> None:
    ids = IdSource(lambda: 1_700_000_000_000)
    drawn = [ids.uuid7() for _ in range(10_000)]
    assert drawn == sorted(set(drawn))


@given(st.integers(0, 2**48 - 1))
def test_id_is_a_uuid_of_version_7_that_knows_its_time(now: int) -> None:
    text = IdSource(lambda: now).uuid7()
    value = uuid.UUID(text)
    assert (value.version, value.variant) == (7, uuid.RFC_4122)
    assert value.int >> 80 == now


def test_kernels_own_principal_is_the_same_everywhere() -> None:
    value = uuid.UUID(SYSTEM)
    assert value.version == 5
    assert SYSTEM == "2a6120e2428f5d73b70e9254245cedb7", "journals name it"


def test_names_and_block_ids_in_human_form_do_not_collide() -> None:
    assert is_name("a-b_c")
    for parts in (one for one in map(chr, range(sys.maxunicode)) if one == "." or one.isspace()):
        assert not any(map(is_name, (parts, f"a{parts}", f"{parts}b", f"a{parts}b")))
