"""The one screen in which people live: the document and the lines around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import ClassVar, Final

from textual import events, on
from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget

from antiphon.actions import Mode, shown_key
from antiphon.keymap import bindings, takes_keys, works_in
from antiphon.render.display import displayable_in_a_row
from antiphon.screens.base_screen import Arrangement
from antiphon.screens.document_actions import DocumentActions
from antiphon.screens.modals import rejected_location
from antiphon.screens.submitter import PendingMessage
from antiphon.session import ConnectionStatus, SessionStatus
from antiphon.widgets.block_list import (
    CellChange,
    CellModel,
    DocumentView,
    HitPlace,
    PreviewView,
)
from antiphon.widgets.composer import Composer
from antiphon.widgets.editor import CellEditor
from antiphon.widgets.outline import Outline
from antiphon.widgets.status import DraftPreview
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.text.transform import shift_through
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role
from antiphon_kernel.types.quoting import join_names

CONTEXTS_LOOK_SECONDS: Final = 5.0
"""How long the list of contexts at the side may show what is no longer so."""

LOOK_SECONDS: Final = 3.0
"""How often it is noted where the person is, and seen which contexts there are and how they are
called: that is no part of the document that is followed."""

NOTICED_SECONDS: Final = 1.0
"""A connection that is lost for less than this was not missed."""

EDITS: Final = frozenset({"edit", "splice", "apply_patch", "restore", "sync", "undo", "redo"})
"""Operations by which a text is edited, and not written for the first time."""

VERSIONS_LOOKED_AT: Final = 1_000
"""The last versions of an output, among which those are whose authors have edited it."""

TYPING_SECONDS: Final = 3.0
"""How long after the last key somebody still counts as typing."""

_WATCHES: Final = ("joins", "key requests")
"""Work in the background that goes on for as long as the screen is shown."""


CELLS_ABOVE: Final = 200
"""Cells above the view from which on earlier ones are read; some screens full."""


@dataclass(frozen=True, slots=True)
class ScreenState:
    """State that a screen passes on to the one that shows its context after it."""

    mode: Mode
    block: str | None
    cursor: int | None
    """Code points into the block's `text`, while it is edited."""
    text: str = ""
    folds: Mapping[str, bool] = field(default_factory=dict)
    """Cells that the person has folded (True) and opened."""
    arrangements: tuple[Sequence[Arrangement], Sequence[Arrangement]] = ((), ())
    """Those that can be undone, and those that can be done again."""
    message_cursor: int = 0
    """Code points into the message."""
    query: str | None = None
    """The text that is looked for, while a search is open; its mode is FIND while it is typed."""
    hit: HitPlace | None = None
    finds_from_message: bool = False
    """The message had the focus before the search."""
    goes_first: bool = False
    """The person has asked for the first cell, which was not here."""
    moving: str | None = None
    """The cell for which the person looks for another place."""
    followed: str | None = None
    """Principal id of who is followed."""
    pending: PendingMessage | None = None
    brings_back: bool = False
    """The person waits to choose among all cells that are cut out."""


class DocumentScreen(DocumentActions):
    """Handles keys, messages of widgets and changes of the session."""

    AUTO_FOCUS = "ComposerEditor"

    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]

    @dataclass
    class Happened(Message):
        """Something that a person who looks elsewhere is told of."""

        text: str

    _at_work: frozenset[str] = frozenset()
    """Usernames of the models whose turns were played when that was looked at last."""

    def on_mount(self) -> None:
        self.composer.editor.completer = self.complete
        for name in ("focused_cell", "following", "unread_lines"):
            self.watch(self.cells, name, self._view_changed, init=False)
        self.source.changed.listen(self._cells_changed)
        self._running_blocks.changed.listen(self._update)
        self._stops = (
            self.set_interval(LOOK_SECONDS, self._look).stop,
            self.set_interval(CONTEXTS_LOOK_SECONDS, self._look_at_contexts).stop,
            *self._live.start(),
            *self.outline.start(),
            self.cells.drawn.listen(self._publish_presence),
            self.cells.drawn.listen(self._look_for_earlier),
            self.cells.drawn.listen(self._note_questions),
            self.source.changed.listen(self._following.text_changed),
            self._live.changed.listen(self._update),
            self._blame.changed.listen(self._suggest),
            self.models.changed.listen(self._models_changed),
            self._session.changed.listen(self._status_changed),
            self._session.replica.watch_presence(self._presence_changed),
            self._session.previewed.listen(self._show_preview),
        )
        self._update_participants()
        if self._status.connection is ConnectionStatus.LIVE:
            self._came_live()
        # The connection may have changed since the screen was made.
        self._status_changed()
        self._update()

    def _look_at_contexts(self) -> None:
        if self._frame.has_sidebar:
            self.run_one_of("contexts", self.fetch_contexts)

    def on_unmount(self) -> None:
        self.retire()

    def retire(self) -> None:
        """Follow nothing any more: another screen shows the context from now on."""
        if self._retired:
            return
        self._retired = True
        self.keep_view()
        for stop in self._stops:
            stop()
        for group in _WATCHES:
            self.workers.cancel_group(self, group)
        self._blame.close()
        self.composer.draft.close()
        self._find.close()
        self._running_blocks.close()
        self.source.close()

    def state(self) -> ScreenState:
        mode, editor = self.mode, self.area.editor
        block, cursor, text = self._current_block() if mode is not Mode.WRITE else None, None, ""
        if mode is Mode.EDIT and editor is not None:
            cursor, text = editor.cursor_offset, editor.text
        return ScreenState(
            mode,
            block,
            cursor,
            text,
            dict(self.source.folds),
            (self._arranged, self._disarranged),
            message_cursor=self.composer.editor.cursor_offset,
            query=self._frame.find.input.value if self._find.is_open and not editor else None,
            hit=self._find.place,
            finds_from_message=self._focused_before_find is self.composer.editor,
            goes_first=self._goes_first and self.cells.order.is_first(block),
            moving=self._moving,
            followed=self._following.followed,
            pending=self._submitter.hand_over(),
            brings_back=self._brings_back,
        )

    def resume(self, state: ScreenState) -> None:
        """Go to where the person was on the screen before this one."""
        self.source.take_folds(state.folds)
        self._arranged, self._disarranged = map(list, state.arrangements)
        self._restore_view()
        cursor = min(state.message_cursor, len(self.composer.editor.text))
        self.composer.editor.select(cursor, cursor)
        if state.query is not None:
            before = self.composer.editor if state.finds_from_message else self.cells
            self._focused_before_find = before
            self._find.go_on(state.query, state.hit)
        if state.block is not None and state.block in self._session.document:
            self.cells.focus_cell(state.block, reveal=False)
            if state.mode is Mode.EDIT:
                self.area.edit(state.block, self._cursor_here(state), to_read=True)
            elif state.mode is Mode.NAVIGATE:
                self.cells.focus()
                if state.goes_first:
                    self.cells.first_cell()
        elif state.mode is Mode.WRITE:
            self.composer.editor.focus()
        if state.moving is not None and state.moving in self._session.document:
            self._moving = state.moving
            self._show_moving()
        if state.followed is not None:
            self._following.follow(state.followed)
        self._following.presence_changed()
        if state.pending is not None:
            self._submitter.take_over(state.pending)
            self._submit_pending()
        if state.brings_back:
            self.action_bring_back()

    def _cursor_here(self, state: ScreenState) -> int | None:
        """Return the place in the block's text here that the cursor had in its text before."""
        if state.block is None or state.cursor is None:
            return None
        changes = plan_difference(state.text, self._session.document.text(state.block))
        return shift_through(state.cursor, changes, stick="left")

    def arrive_at(self, block: str, query: str = "") -> None:
        """Go to a cell and a text in it as soon as the document is there, not where one was."""
        self._arriving, self._arriving_query = block, query
        self.cells.focus()

    def _restore_view(self) -> None:
        context = self._session.document.context
        if context is not None and not self._came_back:
            self._came_back = True
            if self._preview is not None:
                self._preview.hand_over(self.cells)
            elif self._arriving is not None and self.cells.has_cell(self._arriving):
                self.cells.focus_cell(self._arriving)
            else:
                self._memory.go_back(context, self.cells)
            block, query = self._arriving, self._arriving_query
            if block is not None and query and self.cells.has_cell(block):
                self._find.find_from(block, query)

    def _show_preview(self) -> None:
        """Show some blocks of a long context, if they are those that the document will show."""
        preview = self._session.preview
        if preview is None or self._preview is not None or self._session.is_live:
            return
        block = self._arriving or self._memory.anchored_block(preview.context)
        if block is not None and block not in preview.document:
            return
        source = CellModel(preview.document, me=preview.me, user=self.user)
        source.gutter = self.source.gutter
        view = self._preview = PreviewView(source)
        self._frame.cover_page(view)
        self.call_after_refresh(self._place_preview, view, preview.context)

    def _place_preview(self, view: PreviewView, context: str) -> None:
        if self._arriving is not None:
            view.cells.focus_cell(self._arriving)
        else:
            self._memory.go_back(context, view.cells)

    def _hide_preview(self) -> None:
        """Show the document instead, or nothing if it cannot be had."""
        preview, self._preview = self._preview, None
        if preview is not None:
            preview.remove()

    def keep_view(self, *, is_left: bool = True) -> None:
        """Write down what is on the screen, for whoever comes back."""
        context = self._session.document.context
        if context is not None and self._came_back:
            self._memory.keep(context, self.label, self.cells, is_left=is_left)

    def _look_for_earlier(self) -> None:
        """Read earlier cells before the person has come to the first that is here."""
        if self._session.omitted and not self.cells.following:
            if self.cells.cells_above < CELLS_ABOVE:
                self.read_earlier(2 * len(self._session.document))

    # Keys and messages

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return (
            works_in(action, self.mode)
            and takes_keys(action, lambda: self.situation)
            and super().check_action(action, parameters)
        )

    @on(events.Paste)
    @on(events.Key)
    def _typed_nowhere(self, event: events.Key | events.Paste) -> None:
        """Tell who types where nothing can be typed why, or what can be done instead."""
        refusal = self.user.refusal
        if refusal is not None and (isinstance(event, events.Paste) or event.is_printable):
            self.hint(refusal)
        elif self.mode not in (Mode.NAVIGATE, Mode.CONTEXTS):
            return
        elif isinstance(event, events.Paste):
            self.hint(
                "Nothing is pasted here: <key:write> goes to the message, <key:edit> into a cell."
            )
        elif event.key not in self.active_bindings:
            self.hint(
                f"{shown_key(event.key)} does nothing here: <key:help> lists the keys that do."
            )

    @on(CellEditor.Left)
    def _editor_left(self, message: CellEditor.Left) -> None:
        if message.editor is not self.composer.editor:
            return
        if self._find.is_open:
            self.action_end_find()
        else:
            self.action_navigate()

    @on(DocumentView.Refused)
    @on(CellEditor.Refused)
    def _edit_refused(self, message: DocumentView.Refused | CellEditor.Refused) -> None:
        self.hint(message.reason)

    @on(DraftPreview.Clicked)
    def _draft_clicked(self, message: DraftPreview.Clicked) -> None:
        reason = self.source.edit_denied_reason(message.block)
        if reason is not None:
            self.hint(reason)

    @on(Outline.Clicked)
    def _outline_clicked(self, message: Outline.Clicked) -> None:
        self.outline.go(message.entry)

    def on_composer_changed(self, message: Composer.Changed) -> None:
        del message
        self._submitter.draft_changed()
        self.run_last_of("names", self._submitter.check_names)
        self._publish_presence()
        self._update()

    def on_resize(self, event: events.Resize) -> None:
        if self._frame.fit(event.size):
            self._update_sidebar()

    def _look(self) -> None:
        self.keep_view(is_left=False)
        self.run_last_of("editors", self._name_editors)
        self._update_sidebar()
        if not self._frame.has_sidebar:
            self._list_contexts()

    async def _name_editors(self) -> None:
        """Name who has edited the outputs that are on the screen."""
        for place in self.cells.viewport.places:
            if (
                place is not None
                and self._session.is_live
                and self.source.lacks_editors(place.block)
            ):
                versions = await self._versions(place.block, VERSIONS_LOOKED_AT)
                edits = (one["principal"] for one in versions if one["operation"] in EDITS)
                self.source.show_editors(place.block, edits)

    # Focus, cursor and presence

    def set_focus(
        self,
        widget: Widget | None,
        scroll_visible: bool = True,
        from_app_focus: bool = False,
    ) -> None:
        """The mode is another one from this moment on, for the very next key."""
        before = self.focused
        super().set_focus(widget, scroll_visible, from_app_focus)
        focused = self.focused
        if focused is before:
            return
        if focused is self.composer.editor:
            self.mode = Mode.WRITE
        elif isinstance(focused, CellEditor):
            self.mode = Mode.EDIT
            self._tour.editing()
        elif focused is self._frame.sidebar:
            self._focused_before = before if before is not None else self._focused_before
            self.mode = Mode.CONTEXTS
            self._list_contexts()
        elif focused is self._frame.find.input:
            self.mode = Mode.FIND
        else:
            self.mode = Mode.NAVIGATE
        if self.mode is not Mode.NAVIGATE:
            self._moving = None
        self._publish_presence()
        self._show_answer_keys()
        self._update_participants()
        self._update()

    @on(events.TextSelected)
    def _text_selected(self) -> None:
        self._update()

    @on(CellEditor.CursorMoved)
    @on(CellEditor.Refolded)
    def _cursor_moved(self) -> None:
        self._publish_presence()
        self._update()

    @on(CellEditor.Edited)
    def _edited(self, message: CellEditor.Edited) -> None:
        if self._typing is not None:
            self._typing.stop()  # its `reset` would let it go on to its end first
        self._typing = self.set_timer(TYPING_SECONDS, self._typing_ended)
        self._publish_presence()
        self._undone_theirs = None
        self._arranged.clear()
        self._disarranged.clear()
        if message.editor is not self.composer.editor:
            self._tour.typed(message.inserted)
            self._suggest()

    def _typing_ended(self) -> None:
        self._typing = None
        self._publish_presence()

    def _view_changed(self) -> None:
        self._show_moving()
        self._show_answer_keys()
        if self.mode is Mode.NAVIGATE:
            self._publish_presence()
        self._update_participants()
        self._update()

    # Changes of the session

    def _status_changed(self) -> None:
        """Also called when the number of unsaved changes does, which is with every key."""
        status, before = self._session.status, self._status
        self._update_participants()
        if status == before:
            return
        self._check_caught_up(status)
        self._status = status
        is_live = status.connection is ConnectionStatus.LIVE
        if is_live and before.connection is not ConnectionStatus.LIVE:
            self._came_live()
        if status.is_rejected != before.is_rejected:
            self._role_changed()
        if status.is_rejected:
            self._hide_preview()
        if status.reason is not None and status.reason != before.reason:
            self.hint(status.reason, weighty=status.is_rejected)
        if status.is_rejected and status.refused is not None:
            if before.refused is not status.refused or not before.is_rejected:
                self.hint(rejected_location(status.refused), weighty=True)
        self._update()

    def _check_caught_up(self, status: SessionStatus) -> None:
        """Say so when all that was written without a connection has arrived."""
        is_live = status.connection is ConnectionStatus.LIVE
        if self._status.connection is ConnectionStatus.LIVE and not is_live:
            self._away_since = monotonic()
        elif self._away_since is not None and is_live and not status.unsaved:
            away, self._away_since = monotonic() - self._away_since, None
            if away >= NOTICED_SECONDS:
                self.hint("Caught up: what was written here and elsewhere is together again.")

    def _came_live(self) -> None:
        self._identify()
        self._watch_joins()
        self._submit_pending()
        self._list_contexts()
        self.run_last_of("models", self.models.fetch)
        if self._session.is_elsewhere:
            self.run_last_of("place", self._name_place)
        self._restore_view()
        if self._preview is not None:
            self.cells.draw()
            self.call_after_refresh(self._hide_preview)

    async def _name_place(self) -> None:
        """Show the project's name in the header instead of an address."""
        found = await self._kernel.call("kernel.info", {}, "The kernel does not say its name")
        if found is not None:
            self._frame.header.name_place(displayable_in_a_row(found["label"]))
            self._update_participants()

    def _identify(self) -> None:
        """The kernel may have said who the person is, or that their role is another."""
        me = self._session.me
        if me is None:
            return
        if self.source.me is None:
            self.source.me = me.principal
            self.composer.mark.colour = me.colour
        if me.role is not None and str(me.role) != self.user.role:
            told = self.user.update(str(me.role))
            self._role_changed()
            if told is not None:
                self.hint(told)
        draft = self.composer.draft
        if self.user.refusal is None and not draft.is_identified:
            elsewhere = {
                state.block
                for state in self._session.presence().values()
                if state.principal == me.principal and state.block is not None
            }
            draft.attach(me.principal, elsewhere)
            self._show_drafts()
            self._submit_pending()

    def _role_changed(self) -> None:
        """The person may write now, or may not any more."""
        self.composer.show_role()
        self.source.redraw_questions(self._asked)
        if self.user.refusal is not None:
            # The composer is of no use, unless there is something in it to be copied. An editor
            # that has just been opened gets the focus only now.
            is_idle = self.mode is Mode.WRITE and self.area.editor is None
            if is_idle and not self.composer.draft.text:
                self.action_navigate()
        self._update()
        self._watch_joins()

    def _watch_joins(self) -> None:
        if self.user.is_owner and self._session.is_live:
            self.run_last_of("joins", self._joins.run)
            self.run_last_of("key requests", self._key_requests.run)

    def _submit_pending(self) -> None:
        self.run_in_background(self._submitter.connection_changed())

    def _presence_changed(self) -> None:
        self.source.presence_changed()
        others = self._session.presence().values()
        if self._session.is_live:
            self._identify()
            models = (one.username for one in others if one.kind == PrincipalKind.MODEL)
            self._tour.models_here(next(models, None))
        for one in others:
            if one.kind == PrincipalKind.HUMAN and one.principal != self.source.me:
                self._tour.joined(one.username)
        self._tell_of_turns()
        self._following.presence_changed()
        self._update_participants()
        self._update()

    def _tell_of_turns(self) -> None:
        """Tell of models that have ended their turn since this was called last."""
        at_work = frozenset(one.username for one in self._turns())
        ended, self._at_work = self._at_work - at_work, at_work
        if ended and self._session.is_live:
            self.run_last_of("models", self.models.fetch)
            names = join_names(sorted(ended))
            self.post_message(self.Happened(f"{names} ended · {self.label}"))

    def _cells_changed(self, change: CellChange) -> None:
        if change.drafts:
            self._show_drafts()
        if change.ended and not self._at_work:
            # A turn so short that its author was never seen at work.
            self.run_last_of("models", self.models.fetch)
        self._tell_of_questions(change)
        self._leave_hidden(change)
        if self._shows_tour and self._tour.awaits_text and change.texts:
            self._look_for_model_text(change)
            self._suggest()

    def _leave_hidden(self, change: CellChange) -> None:
        """Go to a cell beside the one that has just been cut out."""
        block, editor = self.cells.focused_cell, self.area.editor
        if block is None or block not in change.changed or not self.source.is_hidden(block):
            return
        if editor is not None and editor.block == block:
            self.area.leave()
            self.hint(
                "Somebody has cut out this cell, with what you wrote in it: the palette brings it"
                " back, Bring back a cell.",
                weighty=True,
            )
        self.cells.focus_cell(self._beside(frozenset([block]), block), reveal=False)

    def _tell_of_questions(self, change: CellChange) -> None:
        """Note calls that have begun to wait for a decision; tell of those the person decides."""
        document = self._session.document
        for block in document.open_blocks(change.changed - self._asked.keys()):
            header = document.header(block)
            if not header.is_undecided:
                continue
            self._asked[block] = None
            if self.source.may_decide(header):
                name = self.source.view(block).author
                self.post_message(self.Happened(f"{name} asks to run a tool · {self.label}"))
        if not change.changed.isdisjoint(self._asked):
            self._choose_next_asked()
            self._show_answer_keys()
            self._update()
            self._update_participants()

    def _look_for_model_text(self, change: CellChange) -> None:
        """The tour waits for a model in the middle of a text, with a typo to mend if it has one."""
        for text in change.texts:
            header = self._session.document.header(text.block)
            if header.kind == BlockKind.TEXT and header.role == Role.MODEL:
                view = self.source.view(text.block)
                typo = self._tour.model_wrote(text.block, view.author, view.text)
                if typo is not None:
                    self.cells.anchoring.hold(text.block, typo)
