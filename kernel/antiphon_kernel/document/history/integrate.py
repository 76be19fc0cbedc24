"""Placement of a new item by the rule of Yjs.

An item goes right of its origin; concurrent ones are ordered by their origins, then by client id.
So the order is the engine's own whatever order updates come in.
"""

from __future__ import annotations

from antiphon_kernel.document.history.item_index import ItemTable, Segment


def integrate(items: ItemTable, new: Segment, beside: Segment | None = None) -> None:
    """Put a new segment into its sequence; what it builds on must be there.

    Args:
        beside: the segment that holds its origin, if that is known.
    """
    left = items.end(new.origin, beside) if new.origin is not None else None
    following, right = left.right if left is not None else new.sequence.head, new.right_origin
    if following is None or right is None:
        is_between = following is None and right is None
    else:
        is_between = following.clock == right.clock and following.client == right.client
    items.add(new, left if is_between else _after_conflicts(items, new, left))


def _after_conflicts(items: ItemTable, new: Segment, left: Segment | None) -> Segment | None:
    """Among what others wrote at the same place, the segment that `new` stands right of."""
    right = items.begin(new.right_origin) if new.right_origin is not None else None
    at = left.right if left is not None else new.sequence.head
    passed: set[int] = set()
    since_left: set[int] = set()
    while at is not None and at is not right:
        passed.add(id(at))
        since_left.add(id(at))
        if at.origin == new.origin:
            if at.client < new.client:
                left = at
                since_left.clear()
            elif at.right_origin == new.right_origin:
                break
        else:
            origin = items.find(at.origin) if at.origin is not None else None
            if origin is None or id(origin) not in passed:
                break
            if id(origin) not in since_left:
                left = at
                since_left.clear()
        at = at.right
    return left
