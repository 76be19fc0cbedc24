"""The situation of the person, from which the keys that work and their names follow."""

from __future__ import annotations

from dataclasses import replace

from antiphon.actions import ActionContext
from antiphon.screens.conversation_controllers import ConversationControllers
from antiphon_kernel.types.enums import BlockKind, Role, Status


def situation_of(parts: ConversationControllers) -> ActionContext:
    """Return what is known of the session, of the focus and of the focused cell."""
    scope, source, cells, draft = parts.scope, parts.source, parts.cells, parts.composer.draft
    session, editor = scope.session, scope.editor
    status, user, target = session.status, source.user, parts.turns.target()
    may_stop = target is not None and session.is_live and user.refusal is None
    here = ActionContext(
        mode=scope.mode,
        mode_word=scope.mode_word,
        live=session.is_live,
        composing=bool(draft.text),
        selecting=bool(scope.selection),
        stoppable=target.words if target is not None and may_stop else None,
        following=cells.following,
        company=bool(session.presence()),
        writer=parts.following.waits_for_me or parts.live.shown_name,
        finding=parts.find.is_open,
        moving=parts.arranger.moving is not None,
        unread=cells.unread_lines > 0,
        waiting=parts.questions.first is not None,
        revising=parts.submitter.is_revising,
        folded=editor is not None and bool(editor.document.labels),
        private=draft.is_private,
        reading=user.refusal is not None,
        running=user.may_run_commands,
        refused=status.refused is not None,
        key_waits=parts.visitors.wait,
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
