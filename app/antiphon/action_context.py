"""Actions available to the local user at this screen, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from antiphon.modes import Mode


@dataclass(frozen=True, slots=True)
class ActionContext:
    """Decides which keys work and what they are called."""

    mode: Mode = Mode.WRITE
    mode_word: str = Mode.WRITE.value
    """What the person is told of the mode."""
    live: bool = False
    """The kernel answers."""
    composing: bool = False
    """There is something in the composer."""
    selecting: bool = False
    """Some text is selected."""
    stoppable: str | None = None
    """Whom Ctrl+C would stop: a username, or `all` for several."""
    following: bool = True
    """The view is at the tail."""
    unread: bool = False
    """There are cells that have not been on screen."""
    focused: bool = False
    """A cell has the focus in NAVIGATE."""
    theirs: bool = False
    """The focused cell was begun by somebody else."""
    foldable: bool = False
    """The focused cell can be folded."""
    reading: bool = False
    """The person may read, not write."""
    refused: bool = False
    """The kernel refused something that was written here."""
    shut_out: bool = False
    """The kernel has sent this app away."""
