"""Keys of the actions: as they are built in, or as a person's settings say."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from textual.binding import Binding
from textual.keys import (
    KEY_ALIASES,
    KEY_NAME_REPLACEMENTS,
    REPLACED_KEYS,
    Keys,
    key_to_character,
)

from antiphon.actions import ACTIONS, SHOWN_KEYS, Action, ActionContext, Mode, Owner, shown_key
from antiphon_kernel.types.quoting import join_names, quote

_ANYWHERE: Final = frozenset(Mode)

_NAMED_ACTION: Final = re.compile(r"<key:(\w+)>")

_TEXT_MODES: Final = frozenset({Mode.WRITE, Mode.EDIT, Mode.FIND})
"""Modes in which letters are text."""

ACTION_NAMED: Final = {action.name: action for action in ACTIONS}

_KEPT: Final = frozenset({"escape", "up", "down", "left", "right", "home", "end", "backspace"})
"""Keys that text areas and dialogs need whatever the settings say."""

_CHOSEN: Final = "action."
"""Begins the name of the key that stands for one which the person has given to an action."""

_WRITTEN: Final = {shown.lower(): key for key, shown in SHOWN_KEYS.items()}
"""Keys by their names as people are shown them."""

_NAMED: Final = frozenset(key.value for key in Keys)

_ALIASES: Final = {alias: key for key, aliases in KEY_ALIASES.items() for alias in aliases} | {
    "ctrl+at": "ctrl+@",
    "ctrl+space": "ctrl+space",
}
"""Keys as they arrive, by other names of theirs: terminals send Ctrl+I and Tab alike. Ctrl+Space
arrives by its own name or as ctrl+@."""

_MODIFIERS: Final = frozenset({"alt", "ctrl", "hyper", "meta", "shift", "super"})


def bindings(owner: Owner) -> list[Binding]:
    """Return a binding for each key of an owner's actions, and one for each one's chosen keys."""
    actions = [one for one in ACTIONS if one.owner is owner and not one.typed]
    built_in = [
        Binding(key, action.name, show=False, priority=action.priority)
        for action in actions
        for key in action.keys
    ]
    chosen = [
        Binding(_CHOSEN + action.name, action.name, show=False, priority=True) for action in actions
    ]
    return built_in + chosen


class KeyMap:
    """All actions with the keys that they have for one person."""

    def __init__(self, chosen: Mapping[str, Sequence[str]] | None = None) -> None:
        """`chosen` holds the keys of actions by name, as `check_keys` returns them."""
        chosen = chosen or {}
        given = self._given = {
            (mode, key): name
            for name, keys in chosen.items()
            for mode in ACTION_NAMED[name].modes
            for key in keys
            if key not in ACTION_NAMED[name].keys
        }
        self.actions = tuple(
            replace(action, keys=_remaining(action, chosen, given)) for action in ACTIONS
        )
        """The actions, in the order in which the footer names them."""
        kept = {(mode, key) for one in self.actions for key in one.keys for mode in one.modes}
        self._taken = {
            (mode, key): action
            for before, action in zip(ACTIONS, self.actions, strict=True)
            for key in before.keys
            if key not in action.keys and key not in _KEPT
            for mode in action.modes
            if (mode, key) in given or (mode, key) not in kept
        }

    def shown_key(self, name: str) -> str:
        """Return the first key of an action as people are shown it; empty if it has none."""
        keys = next(one.keys for one in self.actions if one.name == name)
        return shown_key(keys[0]) if keys else ""

    def name_keys(self, text: str) -> str:
        """Write the key of an action, or its name if it has none, where `<key:undo>` stands."""
        return _NAMED_ACTION.sub(
            lambda found: (
                self.shown_key(found[1]) or found[1] if found[1] in ACTION_NAMED else found[0]
            ),
            text,
        )

    def translate(self, key: str, mode: Mode) -> str | None:
        """Return the key that is bound to what a key means for the person; None if to nothing."""
        name = self._given.get((mode, key))
        if name is not None:
            return _CHOSEN + name
        return None if (mode, key) in self._taken else key

    def explain(self, key: str, mode: Mode) -> str:
        """Say where what a key usually does has gone."""
        action = self._taken[mode, key]
        keys = f"has {action.shown_keys()}" if action.keys else "has no key"
        return f"{shown_key(key)} does nothing here: `{action.name}` {keys} in your settings."

    def footer_actions(self, situation: ActionContext) -> Iterator[Action]:
        """Yield the actions that work now and are worth naming, the most useful first."""
        named: set[str] = set()
        for action in self.actions:
            if (
                action.keys
                and action.keys[0] not in named
                and situation.mode in action.modes
                and action.words
                and action.works(situation)
                and action.footer(situation)
            ):
                named.add(action.keys[0])
                yield action

    def palette_actions(self, situation: ActionContext) -> Iterator[Action]:
        """Yield the actions that are available now: while one writes, those for the page first."""
        is_writing, anywhere = situation.mode is Mode.WRITE, frozenset(Mode)
        for action in sorted(self.actions, key=lambda one: is_writing and one.modes != anywhere):
            if action.title and action.works(situation):
                yield action

    def help_sections(self) -> Iterator[tuple[str, tuple[Action, ...]]]:
        """Title and actions of each part of the help screen, those without keys last."""
        replaying = tuple(one for one in self.actions if one.owner is Owner.REPLAY)
        others = (one for one in self.actions if one.owner is not Owner.REPLAY)
        actions = sorted(others, key=lambda one: not one.keys)
        yield "Anywhere", tuple(one for one in actions if one.modes == _ANYWHERE)
        for mode in Mode:
            yield (
                mode.value,
                tuple(one for one in actions if mode in one.modes and one.modes != _ANYWHERE),
            )
        yield "In a replay", replaying


def _remaining(
    action: Action, chosen: Mapping[str, Sequence[str]], given: Mapping[tuple[Mode, str], str]
) -> tuple[str, ...]:
    """Return the keys of an action; one that is given to another in one of its modes is not."""
    if action.name in chosen:
        return tuple(chosen[action.name])
    return tuple(
        key for key in action.keys if not any((mode, key) in given for mode in action.modes)
    )


def check_keys(
    table: Mapping[str, Any],
) -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, str]]:
    """Return the keys of actions that a person's table gives them, and the reasons not to, by name.

    The first of two actions that want one key gets it. A key that is built in for another action
    is given up by that one.
    """
    chosen: dict[str, tuple[str, ...]] = {}
    problems: dict[str, str] = {}
    users: dict[tuple[Mode, str], str] = {}
    for name, value in table.items():
        try:
            keys = _checked(name, value, users)
        except ValueError as error:
            problems[name] = str(error)
            continue
        chosen[name] = keys
        users.update({(mode, key): name for mode in ACTION_NAMED[name].modes for key in keys})
    return chosen, problems


def _checked(name: str, value: Any, users: Mapping[tuple[Mode, str], str]) -> tuple[str, ...]:
    """Return the keys of one entry; raises ValueError with what is wrong."""
    action = ACTION_NAMED.get(name)
    if action is None:
        raise ValueError(f"there is no action {quote(name)}: `antiphon keys` lists them")
    if action.typed:
        raise ValueError(f"{quote(name)} is typed as text: it has no other key")
    written = [value] if isinstance(value, str) else value
    if not isinstance(written, list) or not all(isinstance(one, str) for one in written):
        raise ValueError(f'{quote(name)} has to be a key like "ctrl+g", or a list of keys')
    keys = tuple(dict.fromkeys(parse_key(one) for one in written))
    for key in keys:
        if key not in action.keys and key in _KEPT:
            raise ValueError(f"{shown_key(key)} has its own meaning and cannot be given to actions")
        text_modes = sorted(action.modes & _TEXT_MODES)
        if key not in action.keys and text_modes and _character(key) is not None:
            names = join_names(text_modes)
            raise ValueError(f"{shown_key(key)} is typed as text in {names}: take one with Ctrl")
        other = next(
            (users[mode, key] for mode in sorted(action.modes) if (mode, key) in users), None
        )
        if other is not None:
            raise ValueError(f"{shown_key(key)} is given to {quote(other)} already")
    return keys


def parse_key(written: str) -> str:
    """Return the name by which a key arrives, of one as people write it: `Ctrl+G`, `?`, `PgUp`.

    Raises:
        ValueError: if there is no such key.
    """
    text = written.strip()
    before, _, last = text.rpartition("+")
    if text == "+" or text.endswith("++"):
        before, last = text[:-2], "+"
    modifiers = sorted(filter(None, (one.strip().lower() for one in before.split("+"))))
    last = last.strip()
    if len(last) > 1:
        last = _WRITTEN.get(last.lower(), last.lower())
    elif not last.isalnum():
        name = unicodedata.name(last, "") if last else ""
        last = name.lower().replace("-", "_").replace(" ", "_")
        last = KEY_NAME_REPLACEMENTS.get(last, last)
    elif modifiers:
        last = last.lower()
    key = "+".join([*modifiers, last])
    is_known = bool(last) and (last in _NAMED or _character(last) is not None)
    if not is_known or not set(modifiers) <= _MODIFIERS:
        raise ValueError(f"there is no key {quote(written)}: write it like ctrl+g, f5, pageup or ?")
    return _ALIASES.get(key, key)


def _character(key: str) -> str | None:
    """Return the character that a key types; None if it types none."""
    character = key_to_character(REPLACED_KEYS.get(key, key))
    return character if character is not None and character.isprintable() else None
