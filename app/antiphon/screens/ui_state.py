"""Actions available to the local user now, read from the screen's parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from antiphon.action_context import ActionContext
from antiphon.modes import Mode
from antiphon.running_blocks import InterruptTarget, RunningBlocks
from antiphon.session import Session
from antiphon.widgets.block_list import DocumentView
from antiphon.widgets.composer import Composer
from antiphon_kernel.client.rejected_edits import Rejection
from antiphon_kernel.types.enums import BlockKind

READING: Final = "READ"
"""In the place of a mode in which others write."""


@dataclass(slots=True)
class UIState:
    """Answers from the state of the parts; remembers only the mode."""

    session: Session
    area: DocumentView
    composer: Composer
    work: RunningBlocks
    selected_on_screen: Callable[[], str]
    """Text that was selected with the mouse outside of editors."""
    mode: Mode = Mode.WRITE
    refusal: str | None = None
    """Why the person may not write, if they may not."""
    looked_at: Rejection | None = None
    """Refused edits that the person has been shown."""

    @property
    def mode_word(self) -> str:
        """The mode as a person is told it: who may not write is never in a mode for it."""
        writing = self.mode in (Mode.WRITE, Mode.EDIT)
        return READING if writing and self.refusal is not None else self.mode.value

    def situation(self) -> ActionContext:
        """Return the state that decides which keys work."""
        cells, live, target = self.area.cells, self.session.is_live, self.target()
        standing = self.session.status
        can_stop = live and self.refusal is None
        block = cells.focused_cell
        header = None
        if block is not None and block in self.session.document:
            header = self.session.document.header(block)
        me = self.session.me
        return ActionContext(
            mode=self.mode,
            mode_word=self.mode_word,
            live=live,
            composing=bool(self.composer.draft.text),
            selecting=bool(self.selected_text()),
            stoppable=target.words if target is not None and can_stop else None,
            following=cells.following,
            unread=cells.unread_lines > 0,
            focused=header is not None,
            theirs=header is not None and me is not None and header.author != me.principal,
            foldable=header is not None and header.kind != BlockKind.TOOL_CALL,
            reading=self.refusal is not None,
            refused=standing.refused is not None,
            shut_out=standing.is_rejected,
        )

    def target(self) -> InterruptTarget | None:
        """Return the target of Ctrl+C."""
        me = self.session.me
        return self.work.target(self.current_block(), me.principal if me is not None else None)

    def current_block(self) -> str | None:
        """The block that the person writes in or looks at."""
        if self.mode is Mode.WRITE:
            return self.composer.draft.block
        if self.mode is Mode.EDIT and self.area.editor is not None:
            return self.area.editor.block
        return self.area.cells.focused_cell

    def selected_text(self) -> str:
        """Return the text that Ctrl+C copies."""
        if self.mode is Mode.WRITE:
            return self.composer.editor.selected_text
        if self.mode is Mode.EDIT and self.area.editor is not None:
            return self.area.editor.selected_text
        return self.selected_on_screen()
