"""Queries on the actions for bindings, footer, help and palette."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from textual.binding import Binding

from antiphon.actions import ACTIONS, Action, ActionContext, Mode

_ANYWHERE: Final = frozenset(Mode)

_MODES: Final = {action.name: action.modes for action in ACTIONS}


def works_in(name: str, mode: Mode) -> bool:
    """Return whether the keys of an action work in a mode; True if it is none of ours."""
    return mode in _MODES.get(name, _ANYWHERE)


def bindings() -> list[Binding]:
    """Return a binding for each key that is not text."""
    return [
        Binding(key, action.name, show=False, priority=action.priority)
        for action in ACTIONS
        if not action.typed
        for key in action.keys
    ]


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
    """Yield the actions that are available now."""
    for action in ACTIONS:
        if action.title is None or (action.mutates and situation.reading):
            continue
        if action.enabled(situation):
            yield action


def help_sections() -> Iterator[tuple[str, tuple[Action, ...]]]:
    """Title and actions of each part of the help screen."""
    yield "Anywhere", tuple(one for one in ACTIONS if one.modes == _ANYWHERE)
    for mode in Mode:
        yield (
            mode.value,
            tuple(one for one in ACTIONS if mode in one.modes and one.modes != _ANYWHERE),
        )
