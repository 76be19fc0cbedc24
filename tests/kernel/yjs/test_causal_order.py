"""The items of an update come out in an order in which each builds only on earlier ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycrdt import Doc, Text, merge_updates

from antiphon_kernel.yjs.causal_order import in_causal_order
from antiphon_kernel.yjs.update import ItemId, Struct, decode_update

moves = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.booleans()), max_size=40)


def update_of(moves: list[tuple[int, int, bool]]) -> bytes:
    """One update of four clients, who sometimes hear of the others before they write."""
    peers: list[Doc[Any]] = [Doc(client_id=number + 1) for number in range(4)]
    updates: list[bytes] = []
    for who, place, hears in moves:
        peer = peers[who]
        if hears and updates:
            peer.apply_update(merge_updates(*updates) if len(updates) > 1 else updates[0])
        before = peer.get_state()
        text = peer.get("text", type=Text)
        text.insert(min(place, len(text)), "ab")
        updates.append(peer.get_update(before))
    whole: Doc[Any] = Doc(client_id=9)
    for update in updates:
        whole.apply_update(update)
    return whole.get_update()


@given(moves)
@settings(max_examples=100, deadline=None)
def test_each_item_comes_once_and_behind_all_that_it_builds_on(
    moves: list[tuple[int, int, bool]],
) -> None:
    structs = decode_update(update_of(moves)).structs
    ends: dict[int, int] = {}
    ordered = list(in_causal_order(structs))
    for item in ordered:
        assert item.clock == ends.get(item.client, 0)
        for other in (item.origin, item.right_origin):
            assert (
                other is None
                or other.clock < ends.get(other.client, 0)
                or (other.client == item.client)
            )
        ends[item.client] = item.clock + item.length
    assert sorted(ordered, key=repr) == sorted(structs, key=repr)


def test_causal_order_treats_items_outside_update_as_known() -> None:
    (first,) = decode_update(update_of([(0, 0, False)])).structs
    later = first._replace(clock=40, origin=ItemId(77, 5))
    other = first._replace(client=2, clock=7, origin=ItemId(1, 41))
    assert list(in_causal_order([other, later])) == [later, other]


def test_items_that_wait_for_each_other_are_an_error() -> None:
    (first,) = decode_update(update_of([(0, 0, False)])).structs
    one: Struct = first._replace(client=1, clock=0, origin=ItemId(2, 0))
    other: Struct = first._replace(client=2, clock=0, origin=ItemId(1, 0))
    with pytest.raises(ValueError, match="wait for each other"):
        list(in_causal_order([one, other]))
