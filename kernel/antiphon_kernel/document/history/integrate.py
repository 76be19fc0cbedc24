"""Placement of a new item by the rule of Yjs.

An item goes right of its origin; concurrent ones are ordered by their origins, then by client id.
So the order is the engine's own whatever order updates come in.
"""

from __future__ import annotations

from antiphon_kernel.document.history.item_index import ItemTable, Segment


def integrate(items: ItemTable, new: Segment) -> None:
    """Put a new segment into its sequence; what it builds on must be there."""
    left = items.end(new.origin) if new.origin is not None else None
    right = items.begin(new.right_origin) if new.right_origin is not None else None
    following = left.right if left is not None else new.sequence.head
    if following is not right:
        left = _after_conflicts(items, new, left, following, right)
    items.add(new, left)


def _after_conflicts(
    items: ItemTable,
    new: Segment,
    left: Segment | None,
    at: Segment | None,
    right: Segment | None,
) -> Segment | None:
    """Among what others wrote at the same place, the segment that `new` stands right of."""
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
