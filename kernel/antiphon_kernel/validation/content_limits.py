"""The limits of what a block holds, whichever way it is written."""

from __future__ import annotations

from antiphon_kernel.limits import Limits
from antiphon_kernel.types.errors import AntiphonError, ErrorCode


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
