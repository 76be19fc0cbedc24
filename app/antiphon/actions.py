"""Modes, and the one list of what keys do in them, in the order in which the footer names them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

from textual.keys import REPLACED_KEYS, key_to_character

SHOWN_KEYS: Final = {
    "enter": "Enter",
    "escape": "Esc",
    "space": "Space",
    "tab": "Tab",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "backspace": "Backspace",
    "delete": "Delete",
    "insert": "Insert",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
}
"""Keys that are no characters, as people are shown them."""


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


class Owner(StrEnum):
    """Class of the widget that has the keys of an action."""

    FRAME = "ConversationFrame"
    PAGE = "DocumentPage"
    CELLS = "CellList"
    COMPOSER = "MessageComposer"
    FIND = "FindBar"
    REPLAY = "ReplayFrame"
    SIDEBAR = "Sidebar"


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
    in_file: bool = False
    """A file fills the page."""
    paired: bool = False
    """A conversation and a file are open, beside or behind each other."""
    after_g: bool = False
    """The key before was g, a moment ago."""
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
    questioned: bool = False
    """It runs, and its server asks a question."""
    waiting: bool = False
    """A call somewhere here waits for a decision of the person here."""
    revising: bool = False
    """A message that was sent already is in the composer."""
    foldable: bool = False
    """The focused cell can be folded."""
    is_result: bool = False
    """The focused cell is what a tool gave, which stays as it is."""
    leads: bool = False
    """The focused cell leads to a file."""
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
    replaying: bool = False
    """A replay is shown, and no kernel is there."""

    def fill(self, words: str) -> str:
        """Fill in the names in the words or the title of an action."""
        return words.format(
            interrupt="copy" if self.selecting else f"stop {self.stoppable or ''}",
            stoppable=self.stoppable or "",
            again=" again" if self.revising else "",
            goal="decide" if self.waiting else "navigate",
            writer=self.writer or "",
            privacy="share" if self.private else "private",
            enter="open" if self.leads else "edit",
            once="answer" if self.questioned else "once",
            always="put aside" if self.questioned else "always",
            no="decline" if self.questioned else "no",
            other="conversation" if self.in_file else "file",
        )


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do with a key.

    Its owner or a controller has a method `action_<name>`, unless `typed` says that the key only
    has its meaning as text.
    """

    name: str
    keys: tuple[str, ...]
    help: str
    """A sentence for the help screen and the palette."""
    modes: frozenset[Mode] = frozenset(Mode)
    owner: Owner = Owner.FRAME
    words: str = ""
    """Text of the footer, two or three words; an action without one is not in the footer. Names in
    braces like `{stoppable}` are filled in."""
    title: str = ""
    """Line of the palette; an action without one is not in the palette."""
    enabled: Callable[[ActionContext], bool] = lambda now: True
    """Whether the key does something now."""
    takes: Callable[[ActionContext], bool] | None = None
    """Whether its keys are its own now, else another action's in the same mode; None: always."""
    footer: Callable[[ActionContext], bool] = lambda now: True
    """Whether the footer names it when it works."""
    typed: bool = False
    """The key is typed into the text and only then means something."""
    priority: bool = False
    """The key is taken before a text area sees it."""
    mutates: bool = False
    """It changes what others see: a viewer is told so instead."""

    def works(self, now: ActionContext) -> bool:
        """Return whether the person here can do it now, in one of its modes."""
        is_its_own = self.takes is None or self.takes(now)
        return is_its_own and self.enabled(now) and not (self.mutates and now.reading)

    def shown_keys(self) -> str:
        return " ".join(shown_key(key) for key in self.keys)


def shown_key(key: str) -> str:
    """Return a key as it is displayed to people: `ctrl+q` as Ctrl+Q."""
    *modifiers, last = key.split("+")
    is_capital = modifiers or (last[:1] == "f" and last[1:].isdigit())
    name = SHOWN_KEYS.get(last)
    if name is None:
        sign = key_to_character(REPLACED_KEYS.get(last, last)) or last
        name = sign.upper() if is_capital else sign
    return "+".join([*(modifier.capitalize() for modifier in modifiers), name])


def _among_messages(now: ActionContext) -> bool:
    """Return whether a conversation is shown, not a file."""
    return not now.in_file


_WRITE: Final = frozenset({Mode.WRITE})
_NAVIGATE: Final = frozenset({Mode.NAVIGATE})
_EDIT: Final = frozenset({Mode.EDIT})

_online = partial(Action, enabled=lambda now: now.live)
_anywhere = partial(Action, priority=True)
_in_source = partial(Action, modes=_EDIT | _NAVIGATE, enabled=lambda now: now.in_file and now.live)
_page = partial(_anywhere, enabled=lambda now: now.live)
_write = partial(Action, modes=_WRITE, owner=Owner.COMPOSER)
_write_message = partial(_write, mutates=True)
_navigate = partial(Action, modes=_NAVIGATE, owner=Owner.PAGE)
_in_list = partial(Action, modes=_NAVIGATE, owner=Owner.CELLS)
_on_cell = partial(_navigate, enabled=lambda now: now.focused and now.live)
_change_cell = partial(_on_cell, mutates=True)
_arrange_cell = partial(_change_cell, takes=_among_messages)
_branched = partial(_navigate, enabled=lambda now: now.branched and now.live)
_unread = partial(_in_list, enabled=lambda now: now.unread)
_replay = partial(
    Action,
    modes=_NAVIGATE,
    owner=Owner.REPLAY,
    takes=lambda now: now.replaying,
)
_found = partial(_navigate, enabled=lambda now: now.finding)
_moving = partial(_navigate, takes=lambda now: now.moving)
_asked = partial(_navigate, enabled=lambda now: now.asks and now.live, mutates=True)
_edit = partial(Action, modes=_EDIT, owner=Owner.PAGE)
_cell_command = partial(
    Action,
    modes=_EDIT | _NAVIGATE,
    owner=Owner.PAGE,
    enabled=lambda now: now.live and (now.focused or now.mode is Mode.EDIT),
)
_drift = partial(_online, keys=(), owner=Owner.PAGE, takes=_among_messages, mutates=True)
_contexts = partial(Action, modes=frozenset({Mode.CONTEXTS}), owner=Owner.SIDEBAR)
_find = partial(Action, modes=frozenset({Mode.FIND}), owner=Owner.FIND)

ACTIONS: Final[tuple[Action, ...]] = (
    # WRITE
    _write_message(
        "send",
        ("enter",),
        "Send the message: the models it names with @ at its start answer, else the default one.",
        words="send{again}",
        enabled=lambda now: now.composing,
    ),
    _write_message(
        "newline",
        ("ctrl+j", "shift+enter"),
        "A new line in the message; a backslash before Enter does the same.",
        words="new line",
        enabled=lambda now: now.composing,
    ),
    _write_message(
        "shell",
        ("exclamation_mark",),
        "At the start of a message: run the rest as a command in the project's folder; asks first"
        " if not all of it was typed in this window or fits on the screen.",
        words="shell",
        enabled=lambda now: now.running and not now.composing,
        typed=True,
    ),
    _write_message(
        "address",
        ("at",),
        "At the start of a message: name the model it is for, as in @aria. Anywhere in it:"
        " @docs/a.md attaches a file of the project. Tab completes both.",
        words="address",
        enabled=lambda now: not now.composing,
        typed=True,
    ),
    _write(
        "command",
        ("slash",),
        "At the start of a message: a command by name, as in /theme or /help; what can be typed is"
        " listed.",
        enabled=lambda now: not now.composing,
        typed=True,
    ),
    _write(
        "navigate",
        ("up", "escape"),
        "From the first line of the message to the cells, to a call that waits for your decision if"
        " there is one; Esc from anywhere. The message stays.",
        words="{goal}",
        title="Go to the cells",
    ),
    _write_message(
        "message_history",
        ("ctrl+r",),
        "The messages and commands that you have sent here, the latest first; what is written finds"
        " those that contain it. Enter takes one over, Esc closes the list.",
    ),
    _write_message(
        "private",
        ("ctrl+t",),
        "Keep the message and the next ones to yourself until you send them, in a file of yours; or"
        " show them to the others while you type, as usual.",
        words="{privacy}",
        title="Private draft on or off",
        footer=lambda now: now.private,
        takes=_among_messages,
    ),
    # FIND
    _find(
        "keep_hit",
        ("enter",),
        "Stay at the hit: n and N go on to others.",
        words="stay",
        priority=True,
    ),
    _find(
        "leave_find",
        ("escape",),
        "End the search, and go back to where you were.",
        words="back",
        priority=True,
    ),
    _find("hit_below", ("down",), "To the next hit.", words="next"),
    _find("hit_above", ("up",), "To the hit before.", words="before"),
    # CONTEXTS
    _contexts(
        "open_context",
        ("enter",),
        "Open the chosen context here.",
        words="open",
        enabled=lambda now: now.live,
    ),
    _contexts("next_context", ("down", "j"), "The context below.", words="context"),
    _contexts("previous_context", ("up", "k"), "The context above."),
    _contexts(
        "open_folder",
        ("right", "l"),
        "Open the chosen folder of the project, or go into it; elsewhere, go to the project.",
        words="project",
        enabled=lambda now: now.live,
    ),
    _contexts("close_folder", ("left", "h"), "Close the chosen folder, or go to the one above."),
    _contexts(
        "leave_contexts",
        ("escape", "tab", "i"),
        "Back to where you were; the sidebar stays.",
        owner=Owner.FRAME,
        words="back",
    ),
    # NAVIGATE in a replay
    _replay("play", ("space",), "Play, or pause.", words="play, pause", priority=True),
    _replay("backward", ("left",), "Five seconds back.", words="back"),
    _replay("forward", ("right",), "Five seconds on.", words="on"),
    _replay(
        "next_mark",
        ("shift+right",),
        "To where somebody sends a message, calls a tool, comes or leaves next.",
        words="mark",
    ),
    _replay("previous_mark", ("shift+left",), "To such a place before this one."),
    _replay("replay_start", ("home",), "To the start of the replay.", priority=True),
    _replay("replay_end", ("end",), "To its end; a click on its bar: anywhere.", priority=True),
    _replay(
        "fork_replay",
        ("enter",),
        "Leave the replay, and fork the context as it was then.",
        words="fork",
        title="Fork the context as it was here",
        priority=True,
    ),
    _replay("faster", ("plus", "equals_sign"), "Twice as fast.", words="faster"),
    _replay("slower", ("minus",), "Half as fast.", words="slower"),
    # EDIT and NAVIGATE
    _edit(
        "back",
        ("escape",),
        "One level back: a selection, the editor, the cells. Never discards text.",
        words="leave",
    ),
    _asked(
        "allow_once",
        ("o",),
        "Let the model's call run that waits for a decision, or answer what its server asks.",
        words="{once}",
        title="Let the call run once",
    ),
    _asked(
        "allow_always",
        ("O",),
        "Let the call run, and every later one of the model with exactly the same arguments in this"
        " context.",
        words="{always}",
        title="Let the call always run",
    ),
    _asked(
        "deny",
        ("n",),
        "Do not let the call run, and tell the model why.",
        words="{no}",
        title="Do not let the call run",
        takes=lambda now: now.asks,
    ),
    _moving(
        "put",
        ("enter",),
        "Put the cell that you move beside the one that you have gone to.",
        words="put it here",
        mutates=True,
    ),
    _moving(
        "leave_move",
        ("escape",),
        "Leave the cell that you move where it is.",
        words="leave it",
    ),
    _navigate(
        "edit",
        ("enter",),
        "Write in the cell, also while a model writes in it; the command of a tool call goes to"
        " the composer, a change of a file and a reference lead to the file. What others have not"
        " sent is theirs alone.",
        words="{enter}",
        title="Edit the cell",
        enabled=lambda now: now.focused,
        footer=lambda now: not now.is_result,
        mutates=True,
    ),
    _found(
        "end_find",
        ("escape",),
        "Mark the hits of the search no longer, and stay where it has led.",
        words="end find",
        takes=lambda now: now.finding,
    ),
    _navigate(
        "leave_file",
        ("escape",),
        "In a file: back to where you were before it was opened.",
        words="back",
        title="Back from the file",
        takes=lambda now: now.in_file,
    ),
    _found(
        "next_hit",
        ("n",),
        "To the next hit of the search; after the last one to the first.",
        words="next hit",
    ),
    _found(
        "previous_hit",
        ("N",),
        "To the hit before; before the first one to the last.",
    ),
    Action(
        "write",
        ("i", "tab", "escape"),
        "To the composer; in a file, into its text.",
        modes=_NAVIGATE,
        words="write",
        title="Write a message",
        enabled=lambda now: not now.in_file and (now.composing or not now.reading),
    ),
    _in_list(
        "fold",
        ("space", "Z"),
        "Fold the cell to a line, or open it, of a call what it printed; a click on its ▸ or ▾ does"
        " the same.",
        words="fold",
        title="Fold or open the cell",
        enabled=lambda now: now.foldable,
        takes=_among_messages,
    ),
    _anywhere(
        "interrupt",
        ("ctrl+c",),
        "Copy what is selected; else stop the model of the focused cell, the one that answers you,"
        " or all that are writing.",
        words="{interrupt}",
        title="Stop {stoppable}",
        enabled=lambda now: now.stoppable is not None or now.selecting,
    ),
    _anywhere(
        "other_page",
        ("f7",),
        "From the file to the conversation, or back; a click does the same where both are seen.",
        words="{other}",
        title="Go to the {other}",
        enabled=lambda now: now.paired,
    ),
    _branched(
        "next_sibling",
        ("greater_than_sign",),
        "To the next message in the place of this one, in its branch.",
        words="branch",
        title="Next branch at this message",
    ),
    _branched(
        "previous_sibling",
        ("less_than_sign",),
        "To the previous message in the place of this one.",
        title="Previous branch at this message",
    ),
    _change_cell(
        "undo",
        ("u",),
        "Take back your last edit of the cell; what others wrote stays.",
        words="undo mine",
        title="Undo my edit",
    ),
    _navigate(
        "undo_theirs",
        ("U",),
        "Take back the last edit of the cell's author, or of who else wrote last in a file; asks"
        " first.",
        title="Undo the author's edit",
        enabled=lambda now: now.focused and now.live and now.theirs,
        mutates=True,
    ),
    _navigate(
        "blame",
        ("b",),
        "Show who wrote what, or stop showing it.",
        words="blame",
        title="Show or hide who wrote what",
        enabled=lambda now: now.live,
    ),
    _on_cell(
        "history",
        ("h",),
        "Go through every version of the cell, with who wrote what; restore one, or fork there.",
        words="history",
        title="History of the cell",
    ),
    _navigate(
        "send_again",
        ("s",),
        "Edit your message in the composer and send it again: in a branch if something follows it.",
        words="send again",
        title="Edit the message and send it again",
        enabled=lambda now: now.own_message and now.live,
        mutates=True,
    ),
    _navigate(
        "answer_again",
        ("a",),
        "Ask the model of the cell again, in a branch that ends with the message that it answers;"
        " after an error it goes on where it ended.",
        words="answer again",
        title="Answer again",
        enabled=lambda now: now.answered and now.live,
        mutates=True,
    ),
    _navigate(
        "reading",
        ("w",),
        "Show what the model of the cell reads, with what its provider keeps; else the only model.",
        title="What the model reads",
        enabled=lambda now: now.live,
        takes=_among_messages,
    ),
    _arrange_cell(
        "cut_out",
        ("x",),
        "Take the cell, a call with its output, out of the page and of what models read; u brings"
        " it back.",
        title="Cut the cell out",
    ),
    _arrange_cell(
        "move",
        ("m",),
        "Move the cell, a call with its output: arrows choose the place, Enter puts it there.",
        title="Move the cell",
    ),
    _arrange_cell(
        "exclude",
        ("e",),
        "Let models not read the cell from now on, or read it again.",
        title="Exclude the cell from what models read, or include it",
    ),
    _change_cell(
        "edit_outside",
        ("E",),
        "Edit the cell in the program that VISUAL or EDITOR names; what others write meanwhile"
        " stays.",
        title="Edit the cell in $EDITOR",
    ),
    _on_cell(
        "time",
        ("t",),
        "Tell when the cell was begun, and who changed it last.",
        title="Time and version of the cell",
    ),
    _cell_command(
        "split",
        (),
        "Cut the cell that you edit in two: the cursor's line begins the second one.",
        title="Split the cell at the cursor's line",
        mutates=True,
        takes=_among_messages,
    ),
    _arrange_cell(
        "fork_here",
        ("F",),
        "Copy the context up to the cell into a new one, and go there.",
        title="Fork from this cell",
    ),
    _on_cell(
        "open_source",
        ("S",),
        "Open the context that the cell came from, at the cell as it was then.",
        title="Go to where the cell came from",
        takes=_among_messages,
    ),
    _drift("push", help="Give cells to another context.", title="Push cells to another context"),
    _drift("pull", help="Take cells of another context.", title="Pull cells from another context"),
    _drift(
        "merge",
        help="Bring what a fork has changed into what it was forked from.",
        title="Merge a fork",
    ),
    _drift(
        "distill",
        help="Have a summary of a context written into this one.",
        title="Distill a context into this one",
    ),
    _drift(
        "commit",
        help="Write the cell into files of the project, and into git.",
        title="Commit the cell into files",
    ),
    Action(
        "open_paste",
        ("ctrl+o",),
        "Show a long pasted text whose label stands in the message or the cell: the one at the"
        " cursor, else all; a click on the label does the same. What is sent is always all of it.",
        modes=_EDIT | _WRITE,
        words="open paste",
        title="Show the pasted text",
        enabled=lambda now: now.folded,
    ),
    _online(
        "undo_edit",
        ("ctrl+z",),
        "Take back your last edit; what others wrote stays.",
        modes=_EDIT | _WRITE,
        words="undo mine",
        footer=lambda now: now.mode is Mode.EDIT,
        mutates=True,
    ),
    Action(
        "redo",
        ("ctrl+y",),
        "Bring back what you undid last.",
        modes=_EDIT | _WRITE | _NAVIGATE,
        title="Redo my edit",
        enabled=lambda now: now.live and (now.focused or now.mode is not Mode.NAVIGATE),
        mutates=True,
    ),
    Action(
        "save",
        ("ctrl+s",),
        "In a file: write it to disk now, which else happens a second after the last change. If it"
        " was changed here and on disk in the same place, decide about that.",
        words="save",
        title="Save the file",
        enabled=lambda now: now.in_file and now.live,
        mutates=True,
    ),
    _anywhere(
        "tail",
        ("ctrl+end",),
        "To the end, and stay there while text comes; in a cell, to the end of its text.",
        words="tail",
        title="To the end",
        footer=lambda now: not now.following and not now.in_file,
    ),
    _anywhere(
        "to_writer",
        ("f3",),
        "To where somebody writes out of sight, whose text is shown above the message (Enter in an"
        " empty message and a click on that text do the same), to who asks you to come, or to what"
        " somebody points at.",
        words="to {writer}",
        title="Go to {writer}",
        enabled=lambda now: now.writer is not None,
    ),
    _navigate(
        "path_after_g",
        ("f",),
        "After g: open the file that the cell names, at its line; of several you choose.",
        takes=lambda now: now.after_g,
    ),
    _navigate(
        "definition_after_g",
        ("d",),
        "In a file, after g: go to the definition of what is named where the cursor was last.",
        enabled=lambda now: now.after_g and now.in_file and now.live,
    ),
    _navigate(
        "follow",
        ("f",),
        "Follow who is in the cell, or its author: their cell, cursor and scrolling, until the"
        " first key.",
        title="Follow who is in the cell",
        enabled=lambda now: now.company,
    ),
    _navigate(
        "point",
        ("p",),
        "Point at a line of the cell for all to see, for a moment; once more at the next line. A"
        " click chooses the line.",
        title="Point at a line",
        enabled=lambda now: now.company and now.focused and now.live,
    ),
    _navigate(
        "copy",
        ("y",),
        "Copy the cell's text.",
        words="copy",
        title="Copy the cell",
        enabled=lambda now: now.focused,
    ),
    Action(
        "copy_markdown",
        (),
        "Copy the cell with its author, a call and its output as code.",
        modes=_EDIT | _NAVIGATE,
        owner=Owner.PAGE,
        title="Copy the cell as Markdown",
        enabled=lambda now: now.focused or now.mode is Mode.EDIT,
    ),
    _cell_command(
        "copy_json",
        (),
        "Copy the cell with everything that the kernel says of it.",
        title="Copy the cell as JSON",
    ),
    _unread(
        "next_unread",
        ("right_square_bracket",),
        "To the next cell that has not been read.",
        words="unread",
        title="Next unread",
    ),
    _unread(
        "previous_unread",
        ("left_square_bracket",),
        "To the previous cell that has not been read.",
        title="Previous unread",
    ),
    _in_list(
        "fold_thinking",
        ("z",),
        "Fold all thinking, or open it.",
        words="thinking",
        title="Fold or open all thinking",
        takes=_among_messages,
    ),
    _in_list(
        "next_cell", ("down", "j"), "The next cell.", words="cell", footer=lambda now: now.reading
    ),
    _in_list("previous_cell", ("up", "k"), "The cell before."),
    _in_list("line_down", ("J",), "A line down; the cursor stays on the screen."),
    _in_list("line_up", ("K",), "A line up.", takes=_among_messages),
    _navigate(
        "explain_in_file",
        ("K",),
        "In a file: tell what is named where the cursor was last.",
        enabled=lambda now: now.live,
        takes=lambda now: now.in_file,
    ),
    _in_list("half_page_down", ("ctrl+d",), "Half a page down."),
    _in_list("half_page_up", ("ctrl+u",), "Half a page up."),
    _in_list("first_cell", ("g", "home"), "The first cell.", title="First cell"),
    _in_list("last_cell", ("G", "end"), "The last cell.", title="Last cell"),
    _edit("edit_next", ("ctrl+down",), "Edit the next cell."),
    _edit(
        "edit_previous",
        ("ctrl+up",),
        "Edit the cell before.",
        words="neighbour",
        footer=_among_messages,
    ),
    # Anywhere
    _anywhere(
        "page_up",
        ("pageup",),
        "A page up; the cursor stays on the screen.",
        words="page",
        footer=lambda now: now.reading,
    ),
    _anywhere("page_down", ("pagedown",), "A page down."),
    _anywhere("help", ("f1",), "This page.", words="help", title="Help"),
    Action("show_help", ("question_mark",), "This page.", modes=_NAVIGATE),
    _anywhere(
        "palette",
        ("ctrl+p",),
        "Everything that can be done, by name.",
        words="palette",
    ),
    _page(
        "contexts",
        ("f4",),
        "The contexts of the kernel: open, make, fork, rename and archive them.",
        title="Contexts: open, new, fork, rename, archive",
    ),
    _page(
        "people",
        ("f5",),
        "Everybody whom the kernel knows: follow, invite, give a role, kick.",
        title="People: follow, invite, role, kick",
    ),
    _page(
        "files",
        ("f6",),
        "Open a file of the project by some letters of its name; in the palette @ does the same.",
        title="Open a file",
    ),
    _online(
        "search_files",
        (),
        "Find a text in the files of the project; in the palette # does the same.",
        title="Find in files",
    ),
    _online(
        "findings",
        (),
        "In a file: what checks and its language server (see docs/files.md) have found in it.",
        title="What is found in the file",
    ),
    _online(
        "go_to_path",
        ("ctrl+g",),
        "Open the file that is named at the cursor, at its line, or that the chosen cell names; gf"
        " does the same among cells.",
        modes=_EDIT | _NAVIGATE,
        title="Go to the file that is named here",
    ),
    _in_source(
        "definition",
        ("f12",),
        "In a file: go to the definition of what is named at the cursor, as its language server"
        " says (see docs/files.md); gd does the same where one does not write.",
        title="Go to the definition",
    ),
    _in_source(
        "explain",
        ("f8",),
        "In a file: tell what is named at the cursor; K does the same where one does not write.",
        title="Tell what is named here",
    ),
    _in_source(
        "complete",
        ("ctrl+space", "ctrl+@"),
        "In a file: offer what can stand at the cursor. Tab takes it, ↑ and ↓ choose, Esc closes.",
        modes=_EDIT,
        title="Complete at the cursor",
    ),
    _anywhere(
        "find",
        ("ctrl+f",),
        "Find a text in the context, or in the cell that you edit; lower case finds both cases.",
        modes=frozenset(Mode) - {Mode.CONTEXTS},
        title="Find in this context",
    ),
    _online(
        "search",
        (),
        "Find a text in all contexts of the kernel, and go to a cell that has it.",
        title="Search in all contexts",
    ),
    Action("find_text", ("slash",), "Find a text in the context.", modes=_NAVIGATE),
    _anywhere(
        "sidebar",
        ("f2",),
        "To the contexts beside the text; once more puts them away.",
        words="sidebar",
        title="Show or hide contexts and people",
    ),
    Action(
        "outline",
        (),
        "Headings and prompts beside the text, in a terminal of 160 columns or more; a click goes"
        " there.",
        title="Show or hide the outline",
    ),
    Action(
        "settings", (), "Where the file of your settings and keys is.", title="Settings and keys"
    ),
    Action("hints", (), "The hints so far, whole.", title="Show past hints"),
    _online(
        "page_history",
        (),
        "Go through every version of the page; restore a cell, or fork the context there.",
        title="History of the page",
    ),
    _online(
        "bring_back",
        (),
        "Choose among the cells that are cut out and bring one back.",
        title="Bring back a cell",
        mutates=True,
    ),
    Action(
        "gather",
        (),
        "Ask everybody to come to where you are.",
        title="Gather everybody here",
        enabled=lambda now: now.company and now.live,
    ),
    Action(
        "refused",
        (),
        "What you wrote and the kernel refused: why, and where it is kept.",
        title="Show what was refused",
        enabled=lambda now: now.refused,
    ),
    Action(
        "decide_key",
        (),
        "Decide about somebody who wants to join over SSH with a key that is not known.",
        title="Let somebody in who waits",
        enabled=lambda now: now.key_waits,
    ),
    Action(
        "join_again",
        (),
        "Ask the kernel to let you in again after it has sent you away.",
        title="Join again",
        enabled=lambda now: now.shut_out,
    ),
    _anywhere(
        "quit",
        ("ctrl+q",),
        "Leave; what is in the composer is there again next time.",
        words="quit",
        title="Quit",
    ),
)
