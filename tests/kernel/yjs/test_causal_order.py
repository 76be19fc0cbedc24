"""The items of an update come out in an order in which each builds only on earlier ones."""

from __future__ import annotations

import random

import pytest

from antiphon_kernel.yjs.causal_order import in_causal_order
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct, decode_update
from tests.kernel.yjs.random_documents import random_documents

FIRST = Struct(1, 0, 2, ContentKind.STRING, parent="text", content="ab")


@pytest.mark.parametrize("seed", range(40))
def test_each_item_comes_once_and_behind_all_that_it_builds_on(seed: int) -> None:
    (document, *peers), _ = random_documents(random.Random(seed))
    for peer in peers:
        document.apply_update(peer.get_update())
    structs = decode_update(document.get_update()).structs
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
    later = FIRST._replace(clock=40, origin=ItemId(77, 5))
    other = FIRST._replace(client=2, clock=7, origin=ItemId(1, 41))
    assert list(in_causal_order([other, later])) == [later, other]


def test_items_that_wait_for_each_other_are_an_error() -> None:
    one: Struct = FIRST._replace(client=1, clock=0, origin=ItemId(2, 0))
    other: Struct = FIRST._replace(client=2, clock=0, origin=ItemId(1, 0))
    with pytest.raises(ValueError, match="wait for each other"):
        list(in_causal_order([one, other]))
