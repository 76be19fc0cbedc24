"""The situation of the person, from which the keys that work and their names follow."""

from __future__ import annotations

from dataclasses import replace

from antiphon.actions import ActionContext
from antiphon.screens.input_focus import InputFocus
from antiphon.session import Session
from antiphon.widgets.block_list import BlockList, CellModel
from antiphon.widgets.composer import DraftSync
from antiphon_kernel.types.enums import BlockKind, Role, Status


def situation_of(
    session: Session,
    focus: InputFocus,
    source: CellModel,
    cells: BlockList,
    draft: DraftSync,
    *,
    stoppable: str | None,
    selecting: bool,
    writer: str | None,
    finding: bool,
    moving: bool,
    waiting: bool,
    revising: bool,
    key_waits: bool,
) -> ActionContext:
    """Return what is known of the session, of the focus and of the focused cell."""
    status, editor = session.status, focus.editor
    here = ActionContext(
        mode=focus.mode,
        mode_word=focus.mode_word,
        live=session.is_live,
        composing=bool(draft.text),
        selecting=selecting,
        stoppable=stoppable,
        following=cells.following,
        company=bool(session.presence()),
        writer=writer,
        finding=finding,
        moving=moving,
        unread=cells.unread_lines > 0,
        waiting=waiting,
        revising=revising,
        folded=editor is not None and bool(editor.document.labels),
        private=draft.is_private,
        reading=source.user.refusal is not None,
        running=source.user.may_run_commands,
        refused=status.refused is not None,
        key_waits=key_waits,
        shut_out=status.is_rejected,
    )
    block, me = cells.focused_cell, session.me
    if block is None:
        return here
    here = replace(here, branched=source.branches.siblings(block) is not None)
    if block not in session.document:
        return here
    header = session.document.header(block)
    is_mine = me is not None and header.author == me.principal
    is_over = header.status in (Status.DONE, Status.ERROR)
    is_message = header.role == Role.USER and header.kind == BlockKind.TEXT
    return replace(
        here,
        focused=True,
        theirs=me is not None and not is_mine,
        own_message=is_mine and is_message and header.status == Status.DONE,
        answered=header.role == Role.MODEL and is_over,
        asks=source.may_decide(header),
        foldable=header.kind != BlockKind.TOOL_CALL or is_over,
        is_result=header.kind == BlockKind.TOOL_RESULT,
    )
