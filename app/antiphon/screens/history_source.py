"""The past of cells, as the kernel tells of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from antiphon.render.display import displayable_in_a_row
from antiphon.render.timeline import HistoryStep, Timeline, TimelineText
from antiphon.screens.kernel_calls import KernelCalls
from antiphon_kernel.document.rendering import render
from antiphon_kernel.document.schema import is_text

STEPS_KEPT: Final = 20_000
"""Changes of a context whose history is shown, the latest ones."""

STEPS_A_CALL: Final = 1_000

_NO_HISTORY: Final = "The history cannot be read"


@dataclass(frozen=True, slots=True)
class HistorySource:
    """Questions of the page, and the way to each answer."""

    steps: Callable[[str | None], Awaitable[Sequence[HistoryStep] | None]]
    """Answers the changes of a block, or of the context; None if that cannot be said."""
    timeline: Callable[[str], Awaitable[Timeline | None]]
    """Answers everything that a block's text has held; None if that cannot be said."""
    author: Callable[[str], tuple[str, int]]
    """Returns name and colour slot of a principal."""
    title: Callable[[str], tuple[str, int]]
    """Returns the words above a block, and their colour slot."""
    order: Sequence[str]
    """The blocks of the page."""


def _step(one: Mapping[str, Any], block: str | None) -> HistoryStep:
    """Return a change as the history of a block, or of a context, tells of it."""
    version = one["version"] if block is None else one["context_version"]
    blocks = one["blocks"] if block is None else {block: one["version"]}
    who = one["principal"], displayable_in_a_row(one["username"])
    return HistoryStep(version, one["time"], *who, one["operation"], blocks)


async def read_steps(kernel: KernelCalls, block: str | None) -> Sequence[HistoryStep] | None:
    """Return the changes of a block, or the latest ones of the context; None if not said."""
    document, found = kernel.session.document, list[HistoryStep]()
    tool, params = "block.history", {"block_id": block, "limit": STEPS_A_CALL}
    if block is None:
        params = {"context": document.context, "last": STEPS_KEPT, "limit": STEPS_A_CALL}
        tool = "context.history"
    after: int | None = 0
    while after is not None:
        page = await kernel.call(tool, {**params, "after_version": after}, _NO_HISTORY)
        if page is None:
            return None
        found += (_step(one, block) for one in page["versions"])
        after = page.get("next")
    return found


async def read_timeline(kernel: KernelCalls, block: str) -> Timeline | None:
    """Return everything that a block's text has held; None if the kernel does not say."""
    document = kernel.session.document
    if not is_text(document.schema(block)):
        # Structured content is shown as it is now.
        now = TimelineText(render(document, block), document.header(block).author, 1)
        return Timeline((now,), 1)
    result = await kernel.call("block.timeline", {"block_id": block}, _NO_HISTORY)
    if result is None:
        return None
    texts = (
        TimelineText(one["text"], one["principal"], one["since"], one.get("until"))
        for one in result["texts"]
    )
    return Timeline(tuple(texts), result["version"])
