"""Errors for refused writes: of raw updates, and of what is longer than a limit."""

from __future__ import annotations

from antiphon_kernel.limits import Limits
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, permission_denied
from antiphon_kernel.yjs.update import ItemId, Struct


def denied(message: str) -> AntiphonError:
    """The client may not do this."""
    return permission_denied(message)


def tools_only() -> AntiphonError:
    """A client has touched what only tools write."""
    return denied(
        "A connected client edits texts and creates its own drafts; header fields are"
        " written by tools: call block.status, block.collapse or the like."
    )


def gap(missing: ItemId) -> AntiphonError:
    """An update builds on something that is not here."""
    return _about(
        missing,
        ErrorCode.GAP,
        f"An update builds on item {missing.clock} of client {missing.client}, which has not"
        " arrived: send everything since the state vector that follows.",
    )


def overtaken(by: ItemId) -> AntiphonError:
    """Something else has come under a number that the update gives to an item of its own."""
    return _about(
        by,
        ErrorCode.GAP,
        f"While an update was checked, item {by.clock} of its client {by.client} came through"
        " another connection: send everything since the state vector that follows.",
    )


def split_surrogate(at: ItemId) -> AntiphonError:
    """An update cuts a character in two; `at` is its second half."""
    return _about(
        at,
        ErrorCode.INVALID_PARAMS,
        f"An update cuts between items {at.clock - 1} and {at.clock} of client {at.client}, which"
        " are the two halves of one character: count in whole characters.",
    )


def misplaced(item: Struct) -> AntiphonError:
    """An item is in no place, or in two."""
    return _about(
        item,
        ErrorCode.INVALID_PARAMS,
        f"Item {item.clock} of client {item.client} names neighbours in different places, or a"
        " parent that holds nothing: start again with a new document.",
    )


def made_up_neighbours(item: Struct) -> AntiphonError:
    """An item names two neighbours that its client cannot have seen beside each other."""
    return _about(
        item,
        ErrorCode.INVALID_PARAMS,
        f"Item {item.clock} of client {item.client} goes between two items that were never beside"
        " each other for its client: name the items left and right of where it is inserted.",
    )


def _about(item: ItemId | Struct, code: ErrorCode, message: str) -> AntiphonError:
    return AntiphonError(code, message, client=str(item.client), clock=item.clock)


def check_limit(found: int, limits: Limits, name: str, what: str, advice: str) -> None:
    """Refuse more than is allowed.

    Args:
        name: of the limit.
        what: the first half of the sentence, with the number that was found.
        advice: what to do instead.

    Raises:
        AntiphonError: too_large.
    """
    limit = getattr(limits, name)
    if found > limit:
        raise AntiphonError(
            ErrorCode.TOO_LARGE,
            f"{what}, {limit} are allowed: {advice}.",
            limit=limit,
            limit_name=name,
            found=found,
        )


def reject_long_text(limits: Limits, code_points: int) -> None:
    """Raises AntiphonError too_large if a block's text would become longer than allowed."""
    what = f"The text of the block would have {code_points} code points"
    advice = "split it into several blocks"
    check_limit(code_points, limits, "block_code_points", what, advice)
