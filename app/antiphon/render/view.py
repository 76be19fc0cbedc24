"""A block as it is to be shown, and its status in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from rich.style import Style

from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import displayable_in_a_row, sanitize_for_display
from antiphon.time_format import format_duration
from antiphon_kernel.types.constants import CUT_OFF, INTERRUPTED, MAX_TOKENS, REFUSED
from antiphon_kernel.types.drift import drift_origin
from antiphon_kernel.types.enums import CallPermission, Status
from antiphon_kernel.types.records import BlockHeader

OWN_NAME: Final = "you"
"""The name of a person on their own screen."""


class ReferredLines(NamedTuple):
    """Lines of a file that a cell refers to, as they are now."""

    path: str
    """Path of the file, as it is called now."""
    place: range
    """Numbers of all of them in the file, from 0."""
    text: str
    """The first of them."""
    notes: tuple[str, ...] = ()
    """Words about the file."""


@dataclass(frozen=True, slots=True)
class CellView:
    """A block as it is to be shown: everything a picture of it depends on, but width and theme."""

    header: BlockHeader
    text: str
    """The block's exact content."""
    version: int = 0
    """Grows whenever anything here changes; together with the block's id it names this view."""
    author: str = ""
    """Username of whoever created the block."""
    ticks: int = 0
    """Counts on while a tool call runs."""
    stopped_by: str | None = None
    """Name of whoever interrupted the block, as the person here reads it."""
    question: str = ""
    """Words below a call that waits for a person's decision; empty if none does."""
    is_sending: bool = False
    """A message of the person here that the kernel has not accepted yet."""
    collapsed: bool = False
    """Folded on this screen now."""
    is_read_from: bool = False
    """Models read from here on: it stands for everything above it."""
    siblings: str = ""
    """The position among the messages in its place: `‹ 2/3 ›`; empty if it is the only one."""
    source_context: str | None = None
    """Label of the context that it came from; None if that is not known any more."""
    referred: ReferredLines | None = None
    """The lines of a file that it refers to; None until they are known."""
    is_told_above: bool = False
    """Output of an edit that has gone well, and is drawn in the cell of its call."""
    is_page: bool = False
    """It is a file that fills the page."""


ASKS: Final = "asks"
"""Label of a call that waits for a decision, and of its model."""

WAITS: Final = "waits"
"""Label of its model for people who may not decide."""

_CUT: Final[Mapping[str | None, str]] = {
    MAX_TOKENS: "cut: it reached the most tokens that an answer may have",
    REFUSED: "refused: the model would not answer, or go on",
    CUT_OFF: "cut: the connection ended before the answer did",
}
"""Labels of answers that are not whole, by the stop reason of a block without an error."""


_COPIED: Final = "unfinished when copied"
"""Label of a block that a fork has copied while it was being written."""

_FAILED: Final = "failed"

_SPINNER: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

_TOLD_OF_FAILURES_MS: Final = 1_000
"""The time that it took to fail is told if it is longer."""


def status_label(view: CellView, theme: CellTheme) -> tuple[tuple[str, Style], ...]:
    """Return a tool call's right label: `✓ 0.3 s`, `✗ 2`, `■ stopped by …`, `⠋` while it runs."""
    if view.question:
        return ((f"? {ASKS}", theme.status_running),)
    if view.header.status == Status.RUNNING:
        return ((_SPINNER[view.ticks % len(_SPINNER)], theme.status_running),)
    if view.header.status not in (Status.DONE, Status.ERROR):
        return ((_one_line(str(view.header.status)), theme.status_running),)
    time = "" if view.header.duration_ms is None else f" {format_duration(view.header.duration_ms)}"
    if view.stopped_by or view.header.stop_reason == INTERRUPTED:
        return (("■", theme.status_failed), (f" {end_label(view)}", theme.dim))
    if view.header.status == Status.ERROR or view.header.is_error or view.header.exit_code:
        words = end_label(view).removeprefix(f"{_FAILED} · ")
        if view.header.status == Status.DONE and not view.header.exit_code:
            words = _FAILED
        if time and (view.header.duration_ms or 0) >= _TOLD_OF_FAILURES_MS:
            words += f" ·{time}"
        return ((f"✗ {words}", theme.status_failed),)
    return (("✓", theme.status_done), (time, theme.dim))


def end_label(view: CellView) -> str:
    """Return the label of a block that ended with an error."""
    if view.stopped_by:
        return f"stopped by {_one_line(view.stopped_by)}"
    if view.header.stop_reason == INTERRUPTED:
        return _COPIED if view.header.source_block else INTERRUPTED
    header = view.header
    if header.permission == CallPermission.DENIED:
        return "denied"
    detail = header.stop_reason if header.exit_code is None else str(header.exit_code)
    return f"{_FAILED} · {_one_line(detail)}" if detail else _FAILED


def end_note(view: CellView) -> str:
    """Return the row below a text that ended with an error or is not whole; empty below others."""
    if view.header.status == Status.ERROR:
        return f"■ {end_label(view)}"
    cut = _CUT.get(view.header.stop_reason) if view.header.status == Status.DONE else None
    return f"■ {cut}" if cut else ""


_DECIDING: Final = {"once": "allow_once", "always": "allow_always", "no": "deny"}
"""Actions that decide, by the decision."""


def permission_question(
    asker: str, *, is_own: bool, may_decide: bool, before: str = "", choices: object = None
) -> str:
    """Return the words below a call that waits: whose rights it has, and which actions decide.

    Args:
        before: what is to be done before the keys of these actions mean them.
        choices: what an agent offers, in its own words, by the decision; a model's call if None.
    """
    rights = "your rights" if is_own else f"the rights of {asker}"
    if may_decide:
        said = choices if isinstance(choices, dict) else {one: one for one in _DECIDING}
        answers = [
            f"<key:{action}> {displayable_in_a_row(str(said.get(one, one)))}"
            for one, action in _DECIDING.items()
            if one in said or one == "no"
        ]
        if choices is not None:  # several words of an answer stay together
            answers = [one.replace(" ", "\N{NO-BREAK SPACE}") for one in answers]
        return f"Run this with {rights}?  {before}{' · '.join(answers)}"
    return f"Waits until {asker} or an owner decides; it would have {rights}."


def server_question(asked: Mapping[str, Any], *, may_decide: bool, before: str = "") -> str:
    """Return the words below a call whose server asks something, and which actions answer it."""
    said = " ".join(f"{asked.get('message', '')} {asked.get('url', '')}".split())
    fields = [str(one.get("title")) for one in asked.get("fields", ()) if isinstance(one, dict)]
    form = f" ({', '.join(fields)})" if fields else ""
    question = displayable_in_a_row(f"{asked.get('server')} asks: {said}{form}")
    if not may_decide:
        return f"{question}  An owner answers."
    answers = ("<key:allow_once> answer", "<key:allow_always> put aside", "<key:deny> decline")
    keys = " · ".join(one.replace(" ", "\N{NO-BREAK SPACE}") for one in answers)
    return f"{question}  {before}{keys}"


def drift_label(view: CellView) -> str:
    """Return the line of a block of kind drift: `⇢ from tidy · pull · bo`."""
    origin = drift_origin(view.header.metadata)
    label, by = ("another context", "") if origin is None else (origin.label, origin.by)
    words = (f"⇢ from {view.source_context or label}", view.header.drift_kind, by)
    return _one_line(" · ".join(filter(None, words)))


def queue_label(position: int) -> str:
    """Return the label of a message that waits for its answer: `queued · 2nd`."""
    is_teen = position // 10 % 10 == 1
    ending = "th" if is_teen else {1: "st", 2: "nd", 3: "rd"}.get(position % 10, "th")
    return f"queued · {position}{ending}"


def _one_line(text: str) -> str:
    return sanitize_for_display(" ".join(text.split()))
