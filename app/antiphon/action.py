"""One thing that a person can do with a key, and how keys are written for people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from antiphon.action_context import ActionContext
from antiphon.modes import Mode

_SHOWN_KEYS: Final = {
    "enter": "Enter",
    "escape": "Esc",
    "space": "Space",
    "tab": "Tab",
    "up": "↑",
    "down": "↓",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "end": "End",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "question_mark": "?",
    "exclamation_mark": "!",
    "at": "@",
}


def _always_enabled(situation: ActionContext) -> bool:
    del situation
    return True


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do with a key.

    The document screen has a method `act_<name>` for each, unless `typed` says that the key only
    has its meaning as text.
    """

    name: str
    keys: tuple[str, ...]
    label_for: str
    """Two or three, for the footer; `{stoppable}` is filled in."""
    help: str
    """A sentence for the help screen and the palette."""
    modes: frozenset[Mode]
    enabled: Callable[[ActionContext], bool] = _always_enabled
    """Whether the key does something now."""
    footer: Callable[[ActionContext], bool] | None = _always_enabled
    """Whether the footer names it when it works; None: never."""
    typed: bool = False
    """The key is typed into the text and only then means something."""
    title: str | None = None
    """Its line in the palette; None: not there."""
    priority: bool = False
    """The key is taken before a text area sees it."""
    mutates: bool = False
    """It changes what others see: a viewer is told so instead."""

    def label(self, situation: ActionContext) -> str:
        """The words for the footer now."""
        return self.label_for.format(stoppable=situation.stoppable or "")

    def palette_title(self, situation: ActionContext) -> str:
        """The line in the palette now."""
        return (self.title or self.label_for).format(stoppable=situation.stoppable or "")

    def shown_keys(self) -> str:
        """All keys as they are written for people."""
        return " ".join(shown_key(key) for key in self.keys)


def shown_key(key: str) -> str:
    """Return a key as it is displayed to people: `ctrl+q` as Ctrl+Q."""
    *modifiers, last = key.split("+")
    name = _SHOWN_KEYS.get(last) or (last.upper() if modifiers or last[:1] == "f" else last)
    if last == "f":
        name = last
    return "+".join([*(modifier.capitalize() for modifier in modifiers), name])
