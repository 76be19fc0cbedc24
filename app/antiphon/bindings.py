"""The one list of what keys do: footer, help, palette and key handling are made from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from antiphon.modes import Mode
from antiphon.situation import Situation

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


def _always(situation: Situation) -> bool:
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
    words: str
    """Two or three, for the footer; `{stoppable}` is filled in."""
    help: str
    """A sentence for the help screen and the palette."""
    modes: frozenset[Mode]
    works: Callable[[Situation], bool] = _always
    """Whether the key does something now."""
    footer: Callable[[Situation], bool] | None = _always
    """Whether the footer names it when it works; None: never."""
    typed: bool = False
    """The key is typed into the text and only then means something."""
    title: str | None = None
    """Its line in the palette; None: not there."""
    priority: bool = False
    """The key is taken before a text area sees it."""
    writes: bool = False
    """It changes what others see: a viewer is told so instead."""

    def label(self, situation: Situation) -> str:
        """The words for the footer now."""
        return self.words.format(stoppable=situation.stoppable or "")

    def palette_title(self, situation: Situation) -> str:
        """The line in the palette now."""
        return (self.title or self.words).format(stoppable=situation.stoppable or "")

    def shown_keys(self) -> str:
        """All keys as they are written for people."""
        return " ".join(shown_key(key) for key in self.keys)


def shown_key(key: str) -> str:
    """How a key is written for people: `ctrl+q` is Ctrl+Q."""
    *modifiers, last = key.split("+")
    name = _SHOWN_KEYS.get(last) or (last.upper() if modifiers or last[:1] == "f" else last)
    if last == "f":
        name = last
    return "+".join([*(modifier.capitalize() for modifier in modifiers), name])


_WRITE: Final = frozenset({Mode.WRITE})
_NAVIGATE: Final = frozenset({Mode.NAVIGATE})
_EDIT: Final = frozenset({Mode.EDIT})
_ANYWHERE: Final = frozenset(Mode)


ACTIONS: Final[tuple[Action, ...]] = (
    # WRITE
    Action(
        "send",
        ("enter",),
        "send",
        "Send the message: the models it names with @ at its start answer, else the default one.",
        _WRITE,
        works=lambda now: now.composing,
        writes=True,
    ),
    Action(
        "newline",
        ("ctrl+j", "shift+enter"),
        "new line",
        "A new line in the message; a backslash before Enter does the same.",
        _WRITE,
        works=lambda now: now.composing,
        writes=True,
    ),
    Action(
        "shell",
        ("exclamation_mark",),
        "shell",
        "At the start of a message: run the rest as a command in the project's folder.",
        _WRITE,
        works=lambda now: not now.composing,
        typed=True,
    ),
    Action(
        "address",
        ("at",),
        "address",
        "At the start of a message: name the model it is for, as in @aria.",
        _WRITE,
        works=lambda now: not now.composing,
        typed=True,
    ),
    Action(
        "navigate",
        ("up",),
        "navigate",
        "From the empty composer to the cells.",
        _WRITE,
        works=lambda now: not now.composing,
        title="Go to the cells",
    ),
    # EDIT and NAVIGATE
    Action(
        "back",
        ("escape",),
        "leave",
        "One level back: a selection, the editor, the cells. Never discards text.",
        _EDIT,
    ),
    Action(
        "edit",
        ("enter", "e"),
        "edit",
        "Write in the cell, also while a model writes in it; the command of a tool call goes to"
        " the composer.",
        _NAVIGATE,
        works=lambda now: now.focused,
        title="Edit the cell",
        writes=True,
    ),
    Action(
        "write",
        ("i", "tab", "escape"),
        "write",
        "To the composer.",
        _NAVIGATE,
        title="Write a message",
    ),
    Action(
        "fold",
        ("space",),
        "fold",
        "Fold the cell to a line, or open it.",
        _NAVIGATE,
        works=lambda now: now.foldable,
        title="Fold or open the cell",
    ),
    Action(
        "undo",
        ("u",),
        "undo mine",
        "Take back your last edit of the cell; what others wrote stays.",
        _NAVIGATE,
        works=lambda now: now.focused and now.live,
        title="Undo my edit",
        writes=True,
    ),
    Action(
        "undo_theirs",
        ("U",),
        "undo theirs",
        "Take back the last edit of the cell's author; asks first.",
        _NAVIGATE,
        works=lambda now: now.focused and now.live and now.theirs,
        footer=None,
        title="Undo the author's edit",
        writes=True,
    ),
    Action(
        "blame",
        ("b",),
        "blame",
        "Show who wrote what, or stop showing it.",
        _NAVIGATE,
        works=lambda now: now.live,
        title="Show or hide who wrote what",
    ),
    Action(
        "undo",
        ("ctrl+z",),
        "undo mine",
        "Take back your last edit; what others wrote stays.",
        _EDIT | _WRITE,
        works=lambda now: now.live,
        footer=lambda now: now.mode is Mode.EDIT,
        writes=True,
    ),
    Action(
        "redo",
        ("ctrl+y",),
        "redo mine",
        "Bring back what you undid last.",
        _EDIT | _WRITE,
        works=lambda now: now.live,
        footer=None,
        title="Redo my edit",
        writes=True,
    ),
    Action(
        "interrupt",
        ("ctrl+c",),
        "stop {stoppable}",
        "Copy what is selected; else stop the model of the focused cell, the one that answers you,"
        " or all that are writing.",
        _ANYWHERE,
        works=lambda now: now.stoppable is not None or now.selecting,
        footer=lambda now: not now.selecting,
        priority=True,
        title="Stop {stoppable}",
    ),
    Action(
        "tail",
        ("ctrl+end",),
        "tail",
        "To the end, and stay there while text comes; in a cell, to the end of its text.",
        _ANYWHERE,
        footer=lambda now: not now.following,
        priority=True,
        title="To the end",
    ),
    Action(
        "copy",
        ("y",),
        "copy",
        "Copy the cell's text.",
        _NAVIGATE,
        works=lambda now: now.focused,
        title="Copy the cell",
    ),
    Action(
        "next_unread",
        ("right_square_bracket",),
        "unread",
        "To the next cell that has not been read.",
        _NAVIGATE,
        works=lambda now: now.unread,
        title="Next unread",
    ),
    Action(
        "previous_unread",
        ("left_square_bracket",),
        "unread above",
        "To the previous cell that has not been read.",
        _NAVIGATE,
        works=lambda now: now.unread,
        footer=None,
        title="Previous unread",
    ),
    Action(
        "fold_thinking",
        ("z",),
        "thinking",
        "Fold all thinking, or open it.",
        _NAVIGATE,
        title="Fold or open all thinking",
    ),
    Action(
        "next_cell",
        ("down", "j"),
        "cell",
        "The next cell.",
        _NAVIGATE,
        footer=None,
    ),
    Action(
        "previous_cell",
        ("up", "k"),
        "cell",
        "The cell before.",
        _NAVIGATE,
        footer=None,
    ),
    Action(
        "half_page_down",
        ("ctrl+d",),
        "half page",
        "Half a page down.",
        _NAVIGATE,
        footer=None,
    ),
    Action(
        "half_page_up",
        ("ctrl+u",),
        "half page",
        "Half a page up.",
        _NAVIGATE,
        footer=None,
    ),
    Action(
        "first_cell", ("g",), "first", "The first cell.", _NAVIGATE, footer=None, title="First cell"
    ),
    Action(
        "last_cell", ("G",), "last", "The last cell.", _NAVIGATE, footer=None, title="Last cell"
    ),
    Action(
        "edit_next",
        ("ctrl+down",),
        "next",
        "Edit the next cell.",
        _EDIT,
        footer=None,
    ),
    Action(
        "edit_previous",
        ("ctrl+up",),
        "neighbour",
        "Edit the cell before.",
        _EDIT,
    ),
    # Anywhere
    Action(
        "page_up",
        ("pageup",),
        "page",
        "A page up; the cursor stays where it is.",
        _ANYWHERE,
        footer=None,
        priority=True,
    ),
    Action(
        "page_down",
        ("pagedown",),
        "page",
        "A page down.",
        _ANYWHERE,
        footer=None,
        priority=True,
    ),
    Action("help", ("f1",), "help", "This page.", _ANYWHERE, priority=True, title="Help"),
    Action("help", ("question_mark",), "help", "This page.", _NAVIGATE, footer=None),
    Action(
        "palette",
        ("ctrl+p",),
        "palette",
        "Everything that can be done, by name.",
        _ANYWHERE,
        priority=True,
    ),
    Action(
        "sidebar",
        ("f2",),
        "sidebar",
        "Show or hide contexts and people.",
        _ANYWHERE,
        priority=True,
        title="Show or hide contexts and people",
    ),
    Action(
        "quit",
        ("ctrl+q",),
        "quit",
        "Leave; what is in the composer is there again next time.",
        _ANYWHERE,
        priority=True,
        title="Quit",
    ),
)

WRITING: Final = frozenset(action.name for action in ACTIONS if action.writes)
"""Names of the actions that change what others see."""


def action_for(mode: Mode, key: str) -> Action | None:
    """What a key does in a mode; None if it is not bound, or is text."""
    for action in ACTIONS:
        if key in action.keys and mode in action.modes and not action.typed:
            return action
    return None


def footer_actions(situation: Situation) -> Iterator[Action]:
    """What works now and is worth naming, the most useful first."""
    for action in ACTIONS:
        if (
            situation.mode in action.modes
            and action.footer is not None
            and action.works(situation)
            and action.footer(situation)
            and not (action.writes and situation.reading)
        ):
            yield action


def palette_actions(situation: Situation) -> Iterator[Action]:
    """What can be done now, each once."""
    seen: set[str] = set()
    for action in ACTIONS:
        if action.title is None or (action.writes and situation.reading):
            continue
        if action.name not in seen and action.works(situation):
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
