"""Ids: kinds that do not stand in for each other, forms that are read back, order by time."""

from __future__ import annotations

import json
import sqlite3
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
    Id,
    KernelId,
    PrincipalId,
    RandomIds,
    SessionId,
    is_name,
)

KINDS = (KernelId, ContextId, PrincipalId, SessionId)

hex_ids = st.uuids().map(lambda value: value.hex)
seqs = st.integers(0, 2**53 - 1)


@pytest.mark.parametrize("kind", KINDS)
@given(text=hex_ids)
def test_id_is_read_back_from_every_form_it_is_written_in(kind: type[Id], text: str) -> None:
    one = kind.parse(text)
    assert kind.parse(str(one)) == one == text
    assert kind.parse(json.loads(json.dumps({"id": one}))["id"]) == one
    assert kind.parse(uuid.UUID(one).hex) == one
    stored = sqlite3.connect(":memory:").execute("SELECT ?", (one,)).fetchone()[0]
    assert kind.parse(stored) == one


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text",
    ["", "0" * 31, "0" * 33, "A" * 32, "g" * 32, "0" * 32 + "\n", str(uuid.UUID(int=1))],
)
def test_id_parse_of_other_text_raises_with_kind(kind: type[Id], text: str) -> None:
    with pytest.raises(ValueError, match=kind.__name__):
        kind.parse(text)


@given(context=hex_ids, principal=hex_ids, seq=seqs)
def test_block_id_is_read_back_from_its_full_form(context: str, principal: str, seq: int) -> None:
    one = BlockId(ContextId(context), PrincipalId(principal), seq)
    again = BlockId.parse(str(one))
    assert again == one and hash(again) == hash(one)
    assert type(again.context) is ContextId and type(again.principal) is PrincipalId
    assert str(one) == f"{context}.{principal}.{seq}"


@pytest.mark.parametrize("seq", ["", "-1", "01", "1.0", "1" * 17, "١", " 1", "1\n"])
def test_number_that_is_none_makes_no_block_id(seq: str) -> None:
    with pytest.raises(ValueError, match="not a full block id"):
        BlockId.parse(f"{'a' * 32}.{'b' * 32}.{seq}")


def check_ids_of_other_kinds(kernel: KernelId, context: ContextId, principal: PrincipalId) -> None:
    """The type checker calls a comment unused if an id is accepted in the place of another."""
    BlockId(principal, principal, 1)  # type: ignore[arg-type]
    BlockId(context, kernel, 1)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200))
def test_ids_sort_by_the_time_they_were_drawn_at(steps: list[int]) -> None:
    """Also within a millisecond, and when the clock stands or goes back."""
    now = 1_700_000_000_000
    clock = iter([now := now + step - 1 for step in steps])
    ids = RandomIds(lambda: next(clock))
    drawn = [ids.uuid7() for _ in steps]
    assert all(before < after for before, after in pairwise(drawn))


def test_uuid7_beyond_one_millisecond_stays_sorted() -> None:
    ids = RandomIds(lambda: 1_700_000_000_000)
    drawn = [ids.uuid7() for _ in range(10_000)]
    assert drawn == sorted(set(drawn))


@given(st.integers(0, 2**48 - 1))
def test_id_is_a_uuid_of_version_7_that_knows_its_time(now: int) -> None:
    text = RandomIds(lambda: now).uuid7()
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
