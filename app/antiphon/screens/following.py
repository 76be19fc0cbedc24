"""Places of people: what others see of the person here, following, pointing, and gathering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from textual.timer import Timer

from antiphon.actions import Mode
from antiphon.render.display import displayable_in_a_row
from antiphon.screens.action_scope import ActionScope, Controller
from antiphon.widgets.block_list import CellChange
from antiphon_kernel.types.block_metadata import agent_call
from antiphon_kernel.types.enums import Activity
from antiphon_kernel.types.presence import PresenceState, TextPlace
from antiphon_kernel.types.quoting import join_names
from antiphon_kernel.types.records import BlockHeader

TYPING_SECONDS: Final = 3.0
"""How long after the last key somebody still counts as typing."""

SHOWN_SECONDS: Final = 5.0
"""How long others see that one points at something, or asks them to come."""

CALL_SECONDS: Final = 30.0
"""How long a call to come can be answered; no second one of the same person is told meanwhile."""


class Following(Controller):
    """Tells others where the person is, and takes the view to where somebody else is.

    That is for once, or until the first key.
    """

    def __init__(self, scope: ActionScope) -> None:
        super().__init__(scope)
        self._typing: Timer | None = None
        """Runs while the person counts as typing."""
        self.pointer: TextPlace | None = None
        """The text that the person here points at."""
        self._gathers = False
        """The person here asks the others to come."""
        self.followed: str | None = None
        """Principal id of who is followed."""
        self._been: tuple[str, int | None] | None = None
        """The place in a file to which who is followed went last."""
        self._has_just_stopped = False
        """The last key has ended it."""
        self._timer: Timer | None = None
        self._called: dict[str, float] = {}
        """Times at which people have asked to come, by principal id."""
        self._caller: str | None = None
        self._pointers: dict[int, TextPlace] = {}
        self._pointed: tuple[str, TextPlace] | None = None
        """Name and place of who points at something out of sight."""

    # The person here

    def publish(self) -> None:
        """Tell the others in which cell the person is, where in it, and what they see of it."""
        scope = self._scope
        if self._source.document is not self._session.document:
            return  # another screen shows the context by now, or soon
        block, editor, mode = scope.block, scope.editor, scope.mode
        cursor, anchor = None, None
        if editor is not None and block is not None:
            cursor, anchor = editor.cursor_offset, editor.anchor_offset
        draft = scope.composer.draft
        is_seen = bool(draft.text) and not draft.is_private
        may_type = mode is Mode.EDIT or (mode is Mode.WRITE and is_seen)
        is_typing = self._typing is not None and may_type
        self._session.replica.awareness.publish(
            block,
            cursor,
            anchor,
            Activity.TYPING if is_typing else Activity.IDLE,
            view=scope.cells.shown.first_place(),
            pointer=self.pointer,
            gathers=self._gathers,
        )

    def typed(self) -> None:
        """A letter was typed, in a cell or in the message."""
        if self._typing is not None:
            self._typing.stop()  # its `reset` would let it go on to its end first
        self._typing = self._scope.composer.set_timer(TYPING_SECONDS, self._typing_ended)
        self.publish()

    def _typing_ended(self) -> None:
        self._typing = None
        self.publish()

    # Whom

    def others(self) -> Sequence[PresenceState]:
        """Return everybody else, one state each, those who write first."""
        found: dict[str, PresenceState] = {}
        for state in filter(self._is_other, self._session.presence().values()):
            known = found.get(state.principal)
            if known is None or _rank(state) < _rank(known):
                found[state.principal] = state
        return sorted(found.values(), key=lambda one: (_rank(one), one.username))

    def in_cell(self, block: str | None) -> PresenceState | None:
        """Return who is meant by a cell: somebody in it, its author, or the only one here."""
        others = self.others()
        inside = [one for one in others if one.block == block and block is not None]
        if not inside and block is not None and block in self._source.document:
            author = self._source.document.header(block).author
            inside = [one for one in others if one.principal == author]
        if not inside and len(others) == 1:
            inside = list(others)
        return inside[0] if inside else None

    # Following

    @property
    def name(self) -> str | None:
        state = self._state(self.followed)
        return None if state is None else displayable_in_a_row(state.username)

    def follow(self, principal: str) -> None:
        """Keep the view at what somebody else sees or writes, until the first key."""
        self._scope.area.leave()
        self.followed, self._been = principal, None
        self.update()
        self._scope.host.update()

    def action_follow(self) -> None:
        """Follow who is in the focused cell; say who could be followed if it is nobody."""
        if self._has_just_stopped:
            return
        meant, others = self.in_cell(self._cells.focused_cell), self.others()
        if meant is not None:
            self.follow(meant.principal)
        elif others:
            names = join_names([displayable_in_a_row(one.username) for one in others])
            self._hint(f"Nobody is in this cell: Ctrl+P, Follow, for {names}.")
        else:
            self._hint("Nobody else is here to be followed.")

    def stop(self) -> bool:
        """Follow nobody any more, at each key, and say so; whether somebody was followed."""
        self._has_just_stopped = self.followed is not None
        if self.followed is None:
            return False
        name, self.followed = self.name, None
        self._hint(f"You are on your own again{f', not with {name}' if name else ''}.")
        self._scope.host.update()
        return True

    def text_changed(self, change: CellChange) -> None:
        """Stay with who is followed while text comes."""
        state = self._state(self.followed)
        if state is not None and (change.texts or change.added or state.block in change.changed):
            self.update()

    def update(self) -> None:
        """Go to where the one who is followed is now."""
        if self.followed is None:
            return
        state = self._state(self.followed)
        if state is None:
            self.followed = None
            self._hint("Who you followed has left.")
        else:
            self._show(state)

    def _state(self, principal: str | None) -> PresenceState | None:
        return next((one for one in self.others() if one.principal == principal), None)

    def _show(self, state: PresenceState) -> None:
        cells, block = self._cells, state.block
        if state.view is not None and state.view.block not in self._source.document:
            self._cells.read_all()
        cursor = next(
            (
                one.cursor.offset
                for one in self._source.writers()
                if one.block == block and one.cursor.principal == state.principal
            ),
            state.cursor,
        )
        is_cell = block is not None and cells.has_cell(block)
        if state.view is None and state.activity != Activity.STREAMING:
            if not cells.viewport.following:
                cells.to_tail()
        elif state.view is not None and cells.has_cell(state.view.block):
            cells.pin(state.view.block, state.view.start, cells.viewport.head_rows)
            cells.layout_now()
        if block is None or not is_cell or self._source.is_hidden(block):
            return
        self._go_to_file(self._source.document.header(block))
        cells.focus_cell(block, reveal=False)
        if cursor is not None and not cells.shown.is_shown(block, cursor):
            cells.go_to(TextPlace(block, cursor, cursor))

    def _go_to_file(self, header: BlockHeader) -> None:
        """Go to the place in a file that the call of an agent is about, and back for what is not.

        A call that people are asked about is read here.
        """
        been, self._been = self._been, None
        match agent_call(header).get("locations"):
            case [*_, {"path": str(path), **rest}] if not header.is_undecided:
                line = rest.get("line")
                self._been = path, line if isinstance(line, int) else None
                if self._been != been:
                    self._scope.files.open(*self._been)
            case _ if been and not self._scope.frame.is_beside:
                if self._cells.app.screen is not self._cells.screen:
                    self._scope.files.pages.come()

    # Pointing and gathering

    def action_point(self) -> None:
        """Point at a line of the focused cell, the next one each time."""
        before, cells, block = self.pointer, self._cells, self._cells.focused_cell
        lines = cells.shown.lines(block) if block is not None else []
        places = [(line, text) for line in lines if (text := cells.shown.text_of(line)) is not None]
        if not places:
            self._hint("There is no line to point at.")
            return
        chosen = next((text for line, text in places if line == cells.clicked), places[0][1])
        if before is not None and before.block == block:
            chosen = next((text for _, text in places if text.start > before.start), chosen)
        self._say(chosen, gathers=self._gathers)
        if chosen == before:
            self._hint("You point at it: there is no other line of the cell here.")

    def action_gather(self) -> None:
        """Ask the others to come to where the person is."""
        self._say(self.pointer, gathers=True)
        self._hint("The others are asked to come here.")

    def _say(self, pointer: TextPlace | None, *, gathers: bool) -> None:
        self.pointer, self._gathers = pointer, gathers
        self._source.point(pointer)
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if pointer is not None or gathers:
            self._timer = self._cells.set_timer(SHOWN_SECONDS, self._over)
        self.publish()

    def _over(self) -> None:
        self._timer = None
        self._say(None, gathers=False)

    # What the others do

    def presence_changed(self) -> None:
        """Stay with who is followed; tell who points or calls."""
        now = self._scope.clock.monotonic()
        self._called = {who: at for who, at in self._called.items() if now - at < CALL_SECONDS}
        states = self._session.presence()
        for client, state in states.items():
            name = displayable_in_a_row(state.username)
            if state.gathers and state.principal not in self._called and self._is_other(state):
                self._called[state.principal] = now
                self._caller = state.principal
                self._hint(f"{name} asks you to come: <key:to_writer> goes there.")
            place = state.pointer
            if place is not None and self._pointers.get(client) != place:
                if place.block not in self._source.document:
                    self._cells.read_all()
                is_there = self._cells.has_cell(place.block)
                if is_there and not self._cells.shown.is_shown(place.block, place.start):
                    self._pointed = (name, place)
                    self._hint(f"{name} points at a line out of sight: <key:to_writer> goes there.")
        self._pointers = {
            client: state.pointer for client, state in states.items() if state.pointer is not None
        }
        if self._pointed is not None and self._pointed[1] not in self._pointers.values():
            self._pointed = None
        self.update()

    def _is_other(self, state: PresenceState) -> bool:
        me = self._session.me
        return me is None or state.principal != me.principal

    @property
    def waits_for_me(self) -> str | None:
        """The name of who has asked the person here to come, or points at something."""
        caller = self._state(self._caller) if self._caller in self._called else None
        if caller is not None:
            return displayable_in_a_row(caller.username)
        return None if self._pointed is None else self._pointed[0]

    def come(self) -> bool:
        """Go to who has asked for it, or to what somebody points at; False if nobody does."""
        caller = self._state(self._caller) if self._caller in self._called else None
        if caller is not None:
            self._caller = None
            self._show(caller)
            return True
        if self._pointed is None:
            return False
        _, place = self._pointed
        self._pointed = None
        self._cells.go_to(place)
        return True


def _rank(state: PresenceState) -> int:
    order = (Activity.STREAMING, Activity.TYPING)
    return order.index(state.activity) if state.activity in order else len(order)
