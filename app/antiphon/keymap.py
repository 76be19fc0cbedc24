"""Queries on key bindings for footer, help, palette and key handling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from antiphon.action import Action
from antiphon.action_context import ActionContext
from antiphon.actions import ACTIONS
from antiphon.modes import Mode

_ANYWHERE: Final = frozenset(Mode)

WRITING: Final = frozenset(action.name for action in ACTIONS if action.mutates)
"""Names of the actions that change what others see."""


def action_for(mode: Mode, key: str) -> Action | None:
    """Return the action of a key in a mode; None if the key is not bound, or is text."""
    for action in ACTIONS:
        if key in action.keys and mode in action.modes and not action.typed:
            return action
    return None


def footer_actions(situation: ActionContext) -> Iterator[Action]:
    """Yield the actions that work now and are worth naming, the most useful first."""
    for action in ACTIONS:
        if (
            situation.mode in action.modes
            and action.footer is not None
            and action.enabled(situation)
            and action.footer(situation)
            and not (action.mutates and situation.reading)
        ):
            yield action


def palette_actions(situation: ActionContext) -> Iterator[Action]:
    """Yield the actions that are available now, each once."""
    seen: set[str] = set()
    for action in ACTIONS:
        if action.title is None or (action.mutates and situation.reading):
            continue
        if action.name not in seen and action.enabled(situation):
            seen.add(action.name)
            yield action


def help_sections() -> Iterator[tuple[str, tuple[Action, ...]]]:
    """Title and actions of each part of the help screen."""
    yield "Anywhere", tuple(one for one in ACTIONS if one.modes == _ANYWHERE)
    for mode in Mode:
        yield (
            mode.value,
            tuple(one for one in ACTIONS if mode in one.modes and one.modes != _ANYWHERE),
        )


def bound_keys() -> dict[str, bool]:
    """Every key that is an action somewhere, and whether it goes before text areas."""
    keys: dict[str, bool] = {}
    for action in ACTIONS:
        if not action.typed:
            for key in action.keys:
                keys[key] = keys.get(key, False) or action.priority
    return keys
