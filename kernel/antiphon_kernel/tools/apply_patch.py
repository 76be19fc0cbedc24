"""`block.apply_patch`."""

from __future__ import annotations

from antiphon_kernel.kernel import Call
from antiphon_kernel.registry import Params, Result, tool
from antiphon_kernel.text.patch import plan_patch
from antiphon_kernel.tools.sizes import check_size
from antiphon_kernel.tools.text_access import check_writable
from antiphon_kernel.tools.writing import WRITING, wait_persisted
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.roles import Permission
from antiphon_kernel.validation import check_limit


class ApplyPatchParams(Params):
    """A unified diff of one text, as `diff -u` and git make it; file headers may be left out."""

    block_id: str
    patch: str
    """The diff, of one file."""
    section: str | None = None
    """Which text of the block: path of a section or of a text field; its only one if absent."""
    dry_run: bool = False
    """Say whether it would apply, and change nothing."""


class ApplyPatchResult(Result):
    """Outcome of the patch."""

    success: bool
    """Whether every hunk applies."""
    errors: list[str] | None = None
    """Only with `dry_run`: one sentence for each hunk that fails."""
    version: int | None = None
    """How often the block has changed; absent with `dry_run`."""
    context_version: int | None = None
    """The version of the context; absent with `dry_run`."""


@tool(
    "block.apply_patch",
    needs=Permission.WRITE,
    errors=(*WRITING, ErrorCode.PATCH_FAILED),
)
async def apply_patch(call: Call, params: ApplyPatchParams) -> ApplyPatchResult:
    """Apply a unified diff to a block, all or nothing.

    Kept and removed lines must be in the text exactly, the missing newline at its end included
    (the patch says that with a line `\\ No newline at end of file`). A hunk whose lines are not
    where its header says may move, but only to the one place in the text that has them.
    """
    context, block = await call.block(params.block_id)
    check_writable(context.document, call.actor, block, params.section)
    size, limits = len(params.patch), context.limits
    check_limit(size, limits.patch_code_points, f"The patch has {size} code points", "split it")
    text = context.document.text(block, params.section)
    try:
        splices = plan_patch(text, params.patch)
    except AntiphonError as error:
        if params.dry_run:
            return ApplyPatchResult(success=False, errors=error.details["errors"])
        raise
    places = len(splices)
    check_limit(places, limits.splices_per_patch, f"The patch changes {places} places", "split it")
    check_size(context, len(text) + sum(len(one.inserted) - one.deleted for one in splices))
    if params.dry_run:
        return ApplyPatchResult(success=True, errors=[])

    written = context.write(
        call.actor,
        "apply_patch",
        lambda: context.document.splice_all(block, splices, params.section),
        blocks=[block],
    )
    result = await wait_persisted(context, block, written)
    return ApplyPatchResult(success=True, **result.model_dump())
