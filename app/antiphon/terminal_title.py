"""The title of the terminal's window: the context, and what happens in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from antiphon.render.display import displayable_in_a_row
from antiphon.render.view import ASKS
from antiphon.widgets.status import Participant, cut_to

PROGRAM: Final = "antiphon"

ASKING_SIGN: Final = "●"
WRITING_SIGN: Final = "◐"

MOST_COLUMNS: Final = 80
"""Columns behind which a title is cut."""

_MOST_LABEL: Final = 40


def terminal_title(label: str, people: Iterable[Participant], unread: int) -> str:
    """Return the title: `● antiphon: LABEL · aria asks · 2 unread elsewhere`.

    Signs and words of models come first from those that ask for a decision, else from those that
    write. Titles are cut at their right in most places, so the sign stands at the left.

    Args:
        unread: blocks of other contexts that have changed since the person was there.
    """
    models = [one for one in people if one.is_model]
    sign, parts = "", [f"{PROGRAM}: {cut_to(displayable_in_a_row(label), _MOST_LABEL)}"]
    if asking := [one.name for one in models if one.doing == ASKS]:
        sign = f"{ASKING_SIGN} "
        parts.append(_doing(asking, "asks", "ask"))
    elif writing := [one.name for one in models if one.streaming]:
        sign = f"{WRITING_SIGN} "
        parts.append(_doing(writing, "writes", "write"))
    if unread:
        parts.append(f"{unread} unread elsewhere")
    return cut_to(sign + " · ".join(parts), MOST_COLUMNS)


def _doing(names: list[str], one: str, several: str) -> str:
    if len(names) > 1:
        return f"{len(names)} models {several}"
    return f"{displayable_in_a_row(names[0])} {one}"
