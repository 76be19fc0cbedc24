"""Modes, and the one list of what keys do in them, in the order in which the footer names them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

SHOWN_KEYS: Final = {
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
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "at": "@",
    "slash": "/",
}


class Mode(StrEnum):
    """Always exactly one; the footer says which. It follows from what has the focus."""

    WRITE = "WRITE"
    """A message, in the composer."""
    NAVIGATE = "NAVIGATE"
    """Choosing a cell."""
    EDIT = "EDIT"
    """Inside a cell: all keys are text."""
    CONTEXTS = "CONTEXTS"
    """In the sidebar, choosing a context."""
    FIND = "FIND"
    """Typing what to look for."""


@dataclass(frozen=True, slots=True)
class ActionContext:
    """Decides which keys work and what they are called."""

    mode: Mode = Mode.WRITE
    mode_word: str = Mode.WRITE.value
    """Word and hints that the mode shows."""
    live: bool = False
    """The kernel answers."""
    composing: bool = False
    """There is something in the composer."""
    selecting: bool = False
    """Some text is selected."""
    stoppable: str | None = None
    """Target of Ctrl+C: a username, or `all` for several."""
    following: bool = True
    """The view is at the tail."""
    writer: str | None = None
    """Somebody who writes or points out of sight, or asks to come."""
    company: bool = False
    """Somebody else is here."""
    finding: bool = False
    """Hits of a search are marked."""
    moving: bool = False
    """Another place is looked for, for a cell."""
    unread: bool = False
    """There are cells that have not been on screen."""
    focused: bool = False
    """A cell has the focus in NAVIGATE."""
    theirs: bool = False
    """The focused cell was begun by somebody else."""
    branched: bool = False
    """The focused cell's message has others in its place."""
    own_message: bool = False
    """The focused cell is a message of the person here."""
    answered: bool = False
    """The focused cell is what a model has answered."""
    asks: bool = False
    """The focused cell is a call that waits for a decision of the person here."""
    waiting: bool = False
    """A call somewhere here waits for a decision of the person here."""
    revising: bool = False
    """A message that was sent already is in the composer."""
    foldable: bool = False
    """The focused cell can be folded."""
    is_result: bool = False
    """The focused cell is what a tool gave, which stays as it is."""
    reading: bool = False
    """The person may read, not write."""
    running: bool = True
    """The person may run commands."""
    folded: bool = False
    """A label stands for a pasted text, where the cursor is."""
    private: bool = False
    """Nobody else sees what is in the composer."""
    refused: bool = False
    """The kernel refused something that was written here."""
    key_waits: bool = False
    """Somebody wants to join with an SSH key that is not known."""
    shut_out: bool = False
    """The kernel has sent this app away."""


def _always_enabled(situation: ActionContext) -> bool:
    del situation
    return True


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do with a key.

    The document screen has a method `action_<name>` for each, unless `typed` says that the key
    only has its meaning as text.
    """

    name: str
    keys: tuple[str, ...]
    label_for: str
    """Two or three, for the footer; names in braces like `{stoppable}` are filled in."""
    help: str
    """A sentence for the help screen and the palette."""
    modes: frozenset[Mode]
    enabled: Callable[[ActionContext], bool] = _always_enabled
    """Whether the key does something now."""
    takes: Callable[[ActionContext], bool] | None = None
    """Whether its keys are its own now, else another action's in the same mode; None: always."""
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
        return self._filled(self.label_for, situation)

    def palette_title(self, situation: ActionContext) -> str:
        """The line in the palette now."""
        return self._filled(self.title or self.label_for, situation)

    def _filled(self, words: str, situation: ActionContext) -> str:
        again = " again" if situation.revising else ""
        goal = "decide" if situation.waiting else "navigate"
        return words.format(
            stoppable=situation.stoppable or "",
            again=again,
            goal=goal,
            writer=situation.writer or "",
            privacy="share" if situation.private else "private",
        )

    def shown_keys(self) -> str:
        """All keys as they are written for people."""
        return " ".join(shown_key(key) for key in self.keys)


def shown_key(key: str) -> str:
    """Return a key as it is displayed to people: `ctrl+q` as Ctrl+Q."""
    *modifiers, last = key.split("+")
    is_capital = modifiers or (last[:1] == "f" and last[1:].isdigit())
    name = SHOWN_KEYS.get(last) or (last.upper() if is_capital else last)
    return "+".join([*(modifier.capitalize() for modifier in modifiers), name])


_WRITE: Final = frozenset({Mode.WRITE})
_NAVIGATE: Final = frozenset({Mode.NAVIGATE})
_CONTEXTS: Final = frozenset({Mode.CONTEXTS})
_EDIT: Final = frozenset({Mode.EDIT})
_FIND: Final = frozenset({Mode.FIND})
_ANYWHERE: Final = frozenset(Mode)


ACTIONS: Final[tuple[Action, ...]] = (
    # WRITE
    Action(
        "send",
        ("enter",),
        "send{again}",
        "Send the message: the models it names with @ at its start answer, else the default one.",
        _WRITE,
        enabled=lambda now: now.composing,
        mutates=True,
    ),
    Action(
        "newline",
        ("ctrl+j", "shift+enter"),
        "new line",
        "A new line in the message; a backslash before Enter does the same.",
        _WRITE,
        enabled=lambda now: now.composing,
        mutates=True,
    ),
    Action(
        "shell",
        ("exclamation_mark",),
        "shell",
        "At the start of a message: run the rest as a command in the project's folder; asks first"
        " if not all of it was typed in this window or fits on the screen.",
        _WRITE,
        enabled=lambda now: now.running and not now.composing,
        typed=True,
        mutates=True,
    ),
    Action(
        "address",
        ("at",),
        "address",
        "At the start of a message: name the model it is for, as in @aria. Anywhere in it:"
        " @docs/a.md attaches a file of the project. Tab completes both.",
        _WRITE,
        enabled=lambda now: not now.composing,
        typed=True,
        mutates=True,
    ),
    Action(
        "command",
        ("slash",),
        "command",
        "At the start of a message: a command by name, as in /theme or /help; what can be typed is"
        " listed.",
        _WRITE,
        enabled=lambda now: not now.composing,
        footer=None,
        typed=True,
    ),
    Action(
        "navigate",
        ("up", "escape"),
        "{goal}",
        "From the first line of the message to the cells, to a call that waits for your decision if"
        " there is one; Esc from anywhere. The message stays.",
        _WRITE,
        title="Go to the cells",
    ),
    Action(
        "message_history",
        ("ctrl+r",),
        "history",
        "The messages and commands that you have sent here, the latest first; what is written finds"
        " those that contain it. Enter takes one over, Esc closes the list.",
        _WRITE,
        footer=None,
        mutates=True,
    ),
    Action(
        "private",
        ("ctrl+t",),
        "{privacy}",
        "Keep the message and the next ones to yourself until you send them, in a file of yours; or"
        " show them to the others while you type, as usual.",
        _WRITE,
        footer=lambda now: now.private,
        title="Private draft on or off",
        mutates=True,
    ),
    # FIND
    Action(
        "keep_hit",
        ("enter",),
        "stay",
        "Stay at the hit: n and N go on to others.",
        _FIND,
        priority=True,
    ),
    Action(
        "leave_find",
        ("escape",),
        "back",
        "End the search, and go back to where you were.",
        _FIND,
        priority=True,
    ),
    Action("hit_below", ("down",), "next", "To the next hit.", _FIND),
    Action("hit_above", ("up",), "before", "To the hit before.", _FIND),
    # CONTEXTS
    Action(
        "open_context",
        ("enter",),
        "open",
        "Open the chosen context here.",
        _CONTEXTS,
        enabled=lambda now: now.live,
    ),
    Action("next_context", ("down", "j"), "context", "The context below.", _CONTEXTS),
    Action(
        "previous_context",
        ("up", "k"),
        "context",
        "The context above.",
        _CONTEXTS,
        footer=None,
    ),
    Action(
        "leave_contexts",
        ("escape", "tab", "i"),
        "back",
        "Back to where you were; the sidebar stays.",
        _CONTEXTS,
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
        "allow_once",
        ("o",),
        "once",
        "Let the model's call run that waits for a decision.",
        _NAVIGATE,
        enabled=lambda now: now.asks and now.live,
        title="Let the call run once",
        mutates=True,
    ),
    Action(
        "allow_always",
        ("O",),
        "always",
        "Let the call run, and every later one of the model with exactly the same arguments in this"
        " context.",
        _NAVIGATE,
        enabled=lambda now: now.asks and now.live,
        title="Let the call always run",
        mutates=True,
    ),
    Action(
        "deny",
        ("n",),
        "no",
        "Do not let the call run, and tell the model why.",
        _NAVIGATE,
        takes=lambda now: now.asks,
        enabled=lambda now: now.asks and now.live,
        title="Do not let the call run",
        mutates=True,
    ),
    Action(
        "put",
        ("enter",),
        "put it here",
        "Put the cell that you move beside the one that you have gone to.",
        _NAVIGATE,
        enabled=lambda now: now.moving,
        takes=lambda now: now.moving,
        mutates=True,
    ),
    Action(
        "leave_move",
        ("escape",),
        "leave it",
        "Leave the cell that you move where it is.",
        _NAVIGATE,
        enabled=lambda now: now.moving,
        takes=lambda now: now.moving,
    ),
    Action(
        "edit",
        ("enter",),
        "edit",
        "Write in the cell, also while a model writes in it; the command of a tool call goes to"
        " the composer. What others have not sent is theirs alone.",
        _NAVIGATE,
        enabled=lambda now: now.focused,
        footer=lambda now: not now.is_result,
        title="Edit the cell",
        mutates=True,
    ),
    Action(
        "end_find",
        ("escape",),
        "end find",
        "Mark the hits of the search no longer, and stay where it has led.",
        _NAVIGATE,
        enabled=lambda now: now.finding,
        takes=lambda now: now.finding,
    ),
    Action(
        "next_hit",
        ("n",),
        "next hit",
        "To the next hit of the search; after the last one to the first.",
        _NAVIGATE,
        enabled=lambda now: now.finding,
    ),
    Action(
        "previous_hit",
        ("N",),
        "hit before",
        "To the hit before; before the first one to the last.",
        _NAVIGATE,
        enabled=lambda now: now.finding,
        footer=None,
    ),
    Action(
        "write",
        ("i", "tab", "escape"),
        "write",
        "To the composer.",
        _NAVIGATE,
        enabled=lambda now: now.composing or not now.reading,
        title="Write a message",
    ),
    Action(
        "fold",
        ("space",),
        "fold",
        "Fold the cell to a line, or open it.",
        _NAVIGATE,
        enabled=lambda now: now.foldable,
        title="Fold or open the cell",
    ),
    Action(
        "next_sibling",
        ("greater_than_sign",),
        "branch",
        "To the next message in the place of this one, in its branch.",
        _NAVIGATE,
        enabled=lambda now: now.branched and now.live,
        title="Next branch at this message",
    ),
    Action(
        "previous_sibling",
        ("less_than_sign",),
        "branch before",
        "To the previous message in the place of this one.",
        _NAVIGATE,
        enabled=lambda now: now.branched and now.live,
        footer=None,
        title="Previous branch at this message",
    ),
    Action(
        "undo",
        ("u",),
        "undo mine",
        "Take back your last edit of the cell; what others wrote stays.",
        _NAVIGATE,
        enabled=lambda now: now.focused and now.live,
        title="Undo my edit",
        mutates=True,
    ),
    Action(
        "undo_theirs",
        ("U",),
        "undo theirs",
        "Take back the last edit of the cell's author; asks first.",
        _NAVIGATE,
        enabled=lambda now: now.focused and now.live and now.theirs,
        footer=None,
        title="Undo the author's edit",
        mutates=True,
    ),
    Action(
        "blame",
        ("b",),
        "blame",
        "Show who wrote what, or stop showing it.",
        _NAVIGATE,
        enabled=lambda now: now.live,
        title="Show or hide who wrote what",
    ),
    Action(
        "history",
        ("h",),
        "history",
        "Go through every version of the cell, with who wrote what; restore one, or fork there.",
        _NAVIGATE,
        enabled=lambda now: now.focused and now.live,
        title="History of the cell",
    ),
    Action(
        "page_history",
        (),
        "history of the page",
        "Go through every version of the page; restore a cell, or fork the context there.",
        _ANYWHERE,
        enabled=lambda now: now.live,
        footer=None,
        title="History of the page",
    ),
    Action(
        "send_again",
        ("s",),
        "send again",
        "Edit your message in the composer and send it again: in a branch if something follows it.",
        _NAVIGATE,
        enabled=lambda now: now.own_message and now.live,
        title="Edit the message and send it again",
        mutates=True,
    ),
    Action(
        "answer_again",
        ("a",),
        "answer again",
        "Ask the model of the cell again, in a branch that ends with the message that it answers;"
        " after an error it goes on where it ended.",
        _NAVIGATE,
        enabled=lambda now: now.answered and now.live,
        title="Answer again",
        mutates=True,
    ),
    Action(
        "reading",
        ("w",),
        "model's view",
        "Show what the model of the cell reads, with what its provider keeps; else the only model.",
        _NAVIGATE,
        enabled=lambda now: now.live,
        footer=None,
        title="What the model reads",
    ),
    Action(
        "cut_out",
        ("x",),
        "cut out",
        "Take the cell, a call with its output, out of the page and of what models read; u brings"
        " it back.",
        _NAVIGATE,
        enabled=lambda now: now.focused and now.live,
        footer=None,
        title="Cut the cell out",
        mutates=True,
    ),
    Action(
        "move",
        ("m",),
        "move",
        "Move the cell, a call with its output: arrows choose the place, Enter puts it there.",
        _NAVIGATE,
        enabled=lambda now: now.focused and now.live,
        footer=None,
        title="Move the cell",
        mutates=True,
    ),
    Action(
        "exclude",
        ("e",),
        "exclude",
        "Let models not read the cell from now on, or read it again.",
        _NAVIGATE,
        enabled=lambda now: now.focused and now.live,
        footer=None,
        title="Exclude the cell from what models read, or include it",
        mutates=True,
    ),
    Action(
        "edit_outside",
        ("E",),
        "$EDITOR",
        "Edit the cell in the program that VISUAL or EDITOR names; what others write meanwhile"
        " stays.",
        _NAVIGATE,
        enabled=lambda now: now.focused and now.live,
        footer=None,
        title="Edit the cell in $EDITOR",
        mutates=True,
    ),
    Action(
        "time",
        ("t",),
        "time",
        "Tell when the cell was begun, and who changed it last.",
        _NAVIGATE,
        enabled=lambda now: now.focused and now.live,
        footer=None,
        title="Time and version of the cell",
    ),
    Action(
        "bring_back",
        (),
        "bring back",
        "Choose among the cells that are cut out and bring one back.",
        _ANYWHERE,
        enabled=lambda now: now.live,
        footer=None,
        title="Bring back a cell",
        mutates=True,
    ),
    Action(
        "split",
        (),
        "split",
        "Cut the cell that you edit in two: the cursor's line begins the second one.",
        _EDIT | _NAVIGATE,
        enabled=lambda now: now.live and (now.focused or now.mode is Mode.EDIT),
        footer=None,
        title="Split the cell at the cursor's line",
        mutates=True,
    ),
    Action(
        "restore",
        (),
        "restore",
        "Give the cell the text that it had in an earlier version; can be undone.",
        _EDIT | _NAVIGATE,
        enabled=lambda now: now.live and (now.focused or now.mode is Mode.EDIT),
        footer=None,
        title="Restore an earlier version of the cell",
        mutates=True,
    ),
    Action(
        "fork_here",
        (),
        "fork",
        "Copy the context up to the cell into a new one, and go there.",
        _EDIT | _NAVIGATE,
        enabled=lambda now: now.live and (now.focused or now.mode is Mode.EDIT),
        footer=None,
        title="Fork from this cell",
        mutates=True,
    ),
    Action(
        "open_paste",
        ("ctrl+o",),
        "open paste",
        "Show a long pasted text whose label stands in the message or the cell: the one at the"
        " cursor, else all; a click on the label does the same. What is sent is always all of it.",
        _EDIT | _WRITE,
        enabled=lambda now: now.folded,
        title="Show the pasted text",
    ),
    Action(
        "undo_edit",
        ("ctrl+z",),
        "undo mine",
        "Take back your last edit; what others wrote stays.",
        _EDIT | _WRITE,
        enabled=lambda now: now.live,
        footer=lambda now: now.mode is Mode.EDIT,
        mutates=True,
    ),
    Action(
        "redo",
        ("ctrl+y",),
        "redo mine",
        "Bring back what you undid last.",
        _EDIT | _WRITE | _NAVIGATE,
        enabled=lambda now: now.live and (now.focused or now.mode is not Mode.NAVIGATE),
        footer=None,
        title="Redo my edit",
        mutates=True,
    ),
    Action(
        "interrupt",
        ("ctrl+c",),
        "stop {stoppable}",
        "Copy what is selected; else stop the model of the focused cell, the one that answers you,"
        " or all that are writing.",
        _ANYWHERE,
        enabled=lambda now: now.stoppable is not None or now.selecting,
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
        "to_writer",
        ("f3",),
        "to {writer}",
        "To where somebody writes out of sight, whose text is shown above the message (Enter in an"
        " empty message and a click on that text do the same), to who asks you to come, or to what"
        " somebody points at.",
        _ANYWHERE,
        enabled=lambda now: now.writer is not None,
        priority=True,
        title="Go to {writer}",
    ),
    Action(
        "follow",
        ("f",),
        "follow",
        "Follow who is in the cell, or its author: their cell, cursor and scrolling, until the"
        " first key.",
        _NAVIGATE,
        enabled=lambda now: now.company,
        footer=None,
        title="Follow who is in the cell",
    ),
    Action(
        "point",
        ("p",),
        "point",
        "Point at a line of the cell for all to see, for a moment; once more at the next line. A"
        " click chooses the line.",
        _NAVIGATE,
        enabled=lambda now: now.company and now.focused,
        footer=None,
        title="Point at a line",
    ),
    Action(
        "gather",
        (),
        "gather",
        "Ask everybody to come to where you are.",
        _ANYWHERE,
        enabled=lambda now: now.company,
        footer=None,
        title="Gather everybody here",
    ),
    Action(
        "copy",
        ("y",),
        "copy",
        "Copy the cell's text.",
        _NAVIGATE,
        enabled=lambda now: now.focused,
        title="Copy the cell",
    ),
    Action(
        "copy_markdown",
        (),
        "copy as Markdown",
        "Copy the cell with its author, a call and its output as code.",
        _EDIT | _NAVIGATE,
        enabled=lambda now: now.focused or now.mode is Mode.EDIT,
        footer=None,
        title="Copy the cell as Markdown",
    ),
    Action(
        "copy_json",
        (),
        "copy as JSON",
        "Copy the cell with everything that the kernel says of it.",
        _EDIT | _NAVIGATE,
        enabled=lambda now: now.live and (now.focused or now.mode is Mode.EDIT),
        footer=None,
        title="Copy the cell as JSON",
    ),
    Action(
        "next_unread",
        ("right_square_bracket",),
        "unread",
        "To the next cell that has not been read.",
        _NAVIGATE,
        enabled=lambda now: now.unread,
        title="Next unread",
    ),
    Action(
        "previous_unread",
        ("left_square_bracket",),
        "unread above",
        "To the previous cell that has not been read.",
        _NAVIGATE,
        enabled=lambda now: now.unread,
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
        footer=lambda now: now.reading,
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
        "A page up; the cursor stays on the screen.",
        _ANYWHERE,
        footer=lambda now: now.reading,
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
    Action(
        "find",
        ("ctrl+f",),
        "find",
        "Find a text in the context, or in the cell that you edit; lower case finds both cases.",
        _WRITE | _NAVIGATE | _EDIT | _FIND,
        footer=None,
        priority=True,
        title="Find in this context",
    ),
    Action(
        "search",
        (),
        "search",
        "Find a text in all contexts of the kernel, and go to a cell that has it.",
        _ANYWHERE,
        enabled=lambda now: now.live,
        footer=None,
        title="Search in all contexts",
    ),
    Action("find_text", ("slash",), "find", "Find a text in the context.", _NAVIGATE, footer=None),
    Action("help", ("f1",), "help", "This page.", _ANYWHERE, priority=True, title="Help"),
    Action("show_help", ("question_mark",), "help", "This page.", _NAVIGATE, footer=None),
    Action(
        "palette",
        ("ctrl+p",),
        "palette",
        "Everything that can be done, by name.",
        _ANYWHERE,
        priority=True,
    ),
    Action(
        "contexts",
        ("f4",),
        "contexts",
        "The contexts of the kernel: open, make, fork, rename and archive them.",
        _ANYWHERE,
        enabled=lambda now: now.live,
        footer=None,
        title="Contexts: open, new, fork, rename, archive",
        priority=True,
    ),
    Action(
        "people",
        ("f5",),
        "people",
        "Everybody whom the kernel knows: follow, invite, give a role, kick.",
        _ANYWHERE,
        enabled=lambda now: now.live,
        footer=None,
        title="People: follow, invite, role, kick",
        priority=True,
    ),
    Action(
        "sidebar",
        ("f2",),
        "sidebar",
        "To the contexts beside the text; once more puts them away.",
        _ANYWHERE,
        priority=True,
        title="Show or hide contexts and people",
    ),
    Action(
        "outline",
        (),
        "outline",
        "Headings and prompts beside the text, in a terminal of 160 columns or more; a click goes"
        " there.",
        _ANYWHERE,
        footer=None,
        title="Show or hide the outline",
    ),
    Action(
        "settings",
        (),
        "settings",
        "Where the file of your settings and keys is.",
        _ANYWHERE,
        footer=None,
        title="Settings and keys",
    ),
    Action(
        "hints",
        (),
        "hints",
        "The hints so far, whole.",
        _ANYWHERE,
        footer=None,
        title="Show past hints",
    ),
    Action(
        "refused",
        (),
        "refused text",
        "What you wrote and the kernel refused: why, and where it is kept.",
        _ANYWHERE,
        enabled=lambda now: now.refused,
        footer=None,
        title="Show what was refused",
    ),
    Action(
        "decide_key",
        (),
        "let in",
        "Decide about somebody who wants to join over SSH with a key that is not known.",
        _ANYWHERE,
        enabled=lambda now: now.key_waits,
        footer=None,
        title="Let somebody in who waits",
    ),
    Action(
        "join_again",
        (),
        "join again",
        "Ask the kernel to let you in again after it has sent you away.",
        _ANYWHERE,
        enabled=lambda now: now.shut_out,
        footer=None,
        title="Join again",
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
