"""The size limit of a block's text, checked before anything is written."""

from __future__ import annotations

from antiphon_kernel.kernel.context import Context
from antiphon_kernel.types.errors import AntiphonError, ErrorCode


def check_size(context: Context, code_points: int) -> None:
    """Raises AntiphonError too_large if a block's text would become longer than allowed."""
    limit = context.limits.block_code_points
    if code_points > limit:
        raise AntiphonError(
            ErrorCode.TOO_LARGE,
            f"The text of the block would have {code_points} code points, {limit} are allowed:"
            " split it into several blocks.",
            limit=limit,
            found=code_points,
        )
