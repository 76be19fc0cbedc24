"""Actions of `antiphon.actions`; one method per name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from textual import on, work
from textual.message import Message
from textual.theme import BUILTIN_THEMES

from antiphon.actions import Mode
from antiphon.completion import (
    Completion,
    SlashCommand,
    complete_address,
    complete_command,
    parse_command,
)
from antiphon.locations import config_folder, under_home
from antiphon.render.display import displayable_in_a_row
from antiphon.render.tool_call import arguments_of
from antiphon.running_blocks import InterruptTarget
from antiphon.screens.base_screen import EARLIER_CELLS, requires_write
from antiphon.screens.cell_actions import CellActions
from antiphon.screens.history import HistoryModal, Wish
from antiphon.screens.history_source import HistorySource, read_steps, read_timeline
from antiphon.screens.kernel_calls import KernelCalls
from antiphon.screens.known_contexts import create_context, fork_context, rename_context
from antiphon.screens.layout import OUTLINE_FROM
from antiphon.screens.modals import (
    LONGEST_REASON,
    PAGE_END,
    PAGE_START,
    REASON_ASKED,
    ConfirmModal,
    KeyModal,
    LineModal,
    TextModal,
    help_rows,
    hint_rows,
    rejected_rows,
)
from antiphon.screens.panels import ContextsPanel, PeoplePanel
from antiphon.screens.reading import ReadingPanel
from antiphon.settings import SETTINGS_FILE
from antiphon.tour import MEND_AT, TYPO
from antiphon.widgets.composer import SHELL_MARK, ComposerEditor
from antiphon.widgets.editor import CellEditor
from antiphon.widgets.sidebar import WIDE, Sidebar
from antiphon.widgets.status import FindBar, HintBar, LiveStrip
from antiphon_kernel.types.block_metadata import CAN_RETRY
from antiphon_kernel.types.enums import BlockKind, PrincipalKind
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.quoting import join_names, quote

NO_CELL: Final = "There is no cell yet."

FIRST_CELL: Final = "This is the first cell."

EARLIER_OFFLINE: Final = "Offline: earlier cells are read when the kernel is back."

LAST_CELL: Final = "This is the last cell."

JUST_APPEARED: Final = "This question has only just appeared: read it, then press the key again."

NOTHING_TO_DECIDE: Final = "No call here waits for a decision of yours."


class DocumentActions(CellActions):
    """Methods behind keys, the palette and messages of widgets."""

    @dataclass
    class SettingChosen(Message):
        """The person has chosen something that the next start is to find as it is."""

        name: str
        value: object

    # Writing

    def action_write(self) -> None:
        if self.user.refusal is not None and not self.composer.draft.text:
            self.hint(self.user.refusal)
        else:
            self.composer.editor.focus()

    @on(ComposerEditor.SendRequested)
    @requires_write
    def action_send(self) -> None:
        text = self.composer.draft.text
        if self._run_command(text):
            return
        submitting = self._submitter.send()
        if submitting is not None:
            self._remember_message(text)
            self.cells.to_tail()
            self._tour.sent()
            self.run_in_background(submitting)
        elif not self.composer.draft.text:
            self._live.go()

    def _remember_message(self, text: str) -> None:
        try:
            self._history.add(text)
        except OSError as error:
            self.hint(f"The message is not in your history: {error}")

    @requires_write
    def action_message_history(self) -> None:
        try:
            messages = self._history.messages()
        except OSError as error:
            self.hint(f"Your messages cannot be read: {error}")
            return
        if not self.composer.editor.offer_history(messages):
            holds = " that contains what is written" if self.composer.draft.text else ""
            other = "other " if self.composer.completions.is_open else ""
            self.hint(f"There is no {other}message of yours{holds}{'' if other else ' yet'}.")

    @requires_write
    def action_newline(self) -> None:
        self.composer.editor.new_line()

    def complete(self, before: str, is_first_line: bool) -> Completion | None:
        if is_first_line and before.startswith("/"):
            return complete_command(before, self.commands())
        document, models = self._session.document, set(self.models.here.names)
        known = {one.username: one.kind for one in document.members()}
        known |= {one.username: one.kind for one in self._session.presence().values()}
        people = {name for name, kind in known.items() if kind == PrincipalKind.HUMAN}
        models |= {name for name, kind in known.items() if kind == PrincipalKind.MODEL}
        return complete_address(before, people, models, self._session.project)

    def commands(self) -> Mapping[str, SlashCommand]:
        """Return the commands that can be typed now, by name: those of the palette, and more."""
        themes = sorted(self.app.available_themes.keys() - BUILTIN_THEMES.keys())
        labels = sorted(one.label for one in self.contexts)
        with_arguments = (
            SlashCommand("theme", "Show another theme.", self.choose_theme, "a theme", themes),
            SlashCommand(
                "model",
                "Choose who answers here.",
                self.models.choose,
                "a model",
                self.models.here.names,
            ),
            SlashCommand(
                "context",
                "Open another context.",
                partial(self._to_context, self._open_labelled),
                "a context",
                labels,
            ),
            SlashCommand(
                "new",
                "Make a context and open it.",
                partial(self._to_context, self._create_context),
                "a name",
            ),
            SlashCommand("rename", "Rename this context.", self._rename, "a name"),
        )
        plain = (
            SlashCommand(
                action.name.replace("_", "-"),
                action.palette_title(self.situation),
                partial(self._run_plain, action.name),
            )
            for action in self.keymap.palette_actions(self.situation)
        )
        return {one.name: one for one in (*with_arguments, *plain)}

    def _run_plain(self, action: str, _: str) -> None:
        """Do what a command without an argument does."""
        getattr(self, f"action_{action}")()

    def _to_context(
        self, command: Callable[[str], Coroutine[Any, Any, bool]], label: str
    ) -> Coroutine[Any, Any, bool]:
        """Let keys wait for the context that a command opens: what is typed next is for that."""
        release = self._keys.hold()

        async def held() -> bool:
            is_opened = await command(label)
            release()
            await self._keys.handled()  # here, if nothing was opened
            return is_opened

        return held()

    async def _open_labelled(self, label: str) -> bool:
        await self.fetch_contexts()
        found = next((one.id for one in self.contexts if one.label == label), "")
        if found or not self._session.is_live:
            self.open_context(found)
        else:
            self.hint(f"There is no other context {quote(label)}.")
        return self._session.is_live and bool(found)

    async def _create_context(self, label: str) -> bool:
        made = await create_context(self._kernel, label)
        if made is not None:
            self._switch_context(made, None)
        return made is not None

    async def _rename(self, label: str) -> bool:
        context = self._session.document.context or ""
        return await rename_context(self._kernel, context, label) is not None

    def choose_theme(self, name: str) -> None:
        """Show a theme, now and in later runs."""
        self.post_message(self.SettingChosen("theme", name))

    def _run_command(self, text: str) -> bool:
        """Do what a message says that is a command; whether it is one."""
        found = parse_command(text)
        if found is None:
            return False
        name, argument = found
        command = self.commands().get(name)
        if command is None:
            self.hint(
                f"There is no command /{name}: / lists them. A space before the / sends a message."
            )
        elif bool(argument) != bool(command.argument) or (
            command.choices and argument not in command.choices
        ):
            known = f": {join_names(command.choices)}" if command.choices else ""
            self.hint(f"/{name} takes {command.argument or 'nothing behind it'}{known}.")
        else:
            self.composer.draft.clear()
            calling = command.run(argument)
            if calling is not None:
                self.run_in_background(self._put_back_if_refused(calling, text))
        return True

    async def _put_back_if_refused(self, calling: Coroutine[Any, Any, bool], text: str) -> None:
        if not await calling:
            self.composer.draft.put_back(text)
            self.composer.editor.action_text_end()

    @requires_write
    def action_private(self) -> None:
        draft = self.composer.draft
        if draft.is_private:
            draft.make_shared()
            self.hint("The others see again what you type.")
        else:
            seen = " What stood there until now could be seen." if draft.text else ""
            draft.make_private()
            self.hint(f"Private: nobody sees what you type until you send it.{seen}")
        self.composer.show_role()

    # Between modes

    @on(ComposerEditor.NavigateRequested)
    def action_navigate(self) -> None:
        if (asked := self.asked_call) is not None:
            self.cells.focus_cell(asked)
        elif self.cells.following:
            self.cells.last_cell()
        elif self.cells.focused_cell is None:
            self.cells.focus_neighbour(-1)
        self.cells.focus()

    @requires_write
    def action_edit(self) -> None:
        block = self.cells.focused_cell
        if block is None:
            self.hint(NO_CELL)
        elif self.source.header(block).kind == BlockKind.TOOL_CALL:
            self._compose_command(block)
        else:
            self.area.edit(block, self._typo_in(block))

    def _typo_in(self, block: str) -> int | None:
        """Return where the tour asks to write in a block, if it is this one."""
        if block != self._tour.typo_block:
            return None
        at = self.source.text(block).find(TYPO)
        return None if at < 0 else at + MEND_AT

    def action_back(self) -> None:
        self.area.leave()

    def action_open_paste(self) -> None:
        editor = self._editor()
        if editor is None or not editor.document.labels:
            self.hint("No label stands for a pasted text here.")
        else:
            editor.unfold_at_cursor()

    def action_edit_next(self) -> None:
        if self.area.editor is not None:
            self.area.editor.action_neighbour(1)

    def action_edit_previous(self) -> None:
        if self.area.editor is not None:
            self.area.editor.action_neighbour(-1)

    def _compose_command(self, block: str) -> None:
        """A call stays as it was made; a copy of its command can be changed and run."""
        view, draft = self.source.view(block), self.composer.draft
        command = view.text or command_in(view.header.input)
        if not command:
            self.hint("This call has no command that could be run again.")
        elif not self.user.may_run_commands:
            self.hint("Only an owner runs commands here: <key:copy> copies this one.")
        elif draft.text.strip():
            self.hint("The composer is not empty: send or clear it, then copy the command.")
        else:
            draft.write(SHELL_MARK + command)
            self._write_on()
            self.hint(
                "The call stays as it is: edit a copy of it here, or press <key:send> to be asked."
            )

    def _write_on(self) -> None:
        """Go to the end of what has been put into the composer."""
        editor = self.composer.editor
        editor.move_cursor(editor.document.end)
        editor.focus()

    # Branches

    def action_next_sibling(self) -> None:
        self._go_to_sibling(1)

    def action_previous_sibling(self) -> None:
        self._go_to_sibling(-1)

    def _go_to_sibling(self, step: int) -> None:
        block = self.cells.focused_cell
        siblings = None if block is None else self.source.branches.siblings(block)
        if siblings is None:
            self.hint("No other message stands in the place of this one.")
            return
        position = siblings.position + step
        if not 0 <= position < len(siblings.places):
            self.hint(f"This is the {'last' if step > 0 else 'first'} of them.")
        elif not self._session.is_live:
            self.hint("Offline: another branch needs the kernel; try again when it is back.")
        else:
            place = siblings.places[position]
            self._switch_context(place.context, place.block)

    @requires_write
    def action_send_again(self) -> None:
        block = self.cells.focused_cell
        if block is None or not self.situation.own_message:
            self.hint("Only a message of your own can be edited and sent again.")
        elif self.composer.draft.text.strip():
            self.hint("The composer is not empty: send or clear it, then edit the message.")
        else:
            self._submitter.revise(block, self.source.text(block))
            self._write_on()
            self.hint("<key:send> sends it again, in a branch if something follows it.")

    @requires_write
    @work(exit_on_error=False)
    async def action_answer_again(self) -> None:
        block = self.cells.focused_cell
        if block is None or not self.situation.answered:
            self.hint("Only what a model has answered can be answered again.")
            return
        if self._session.document.header(block).metadata.get(CAN_RETRY) is True:
            if await self.models.go_on(block):
                self.cells.to_tail()
            return
        answered = await self.models.answer(block)
        if answered is not None:
            self.follow_answer(answered.context)

    # Cells

    @requires_write
    @work(exit_on_error=False)
    async def action_allow_once(self) -> None:
        await self._decide("once")

    @requires_write
    @work(exit_on_error=False)
    async def action_allow_always(self) -> None:
        await self._decide("always")

    @requires_write
    @work(exit_on_error=False)
    async def action_deny(self) -> None:
        await self._decide("no")

    async def _decide(self, decision: str) -> None:
        block = self.cells.focused_cell
        if block is None or not self.situation.asks:
            self.hint(NOTHING_TO_DECIDE)
            return
        if self._has_just_appeared(block):
            self.hint(JUST_APPEARED)
            return
        decide = partial(self._tell_decision, block, decision)
        if decision == "no":
            is_decided = await self.app.push_screen_wait(
                LineModal(REASON_ASKED, decide, enter="say no", longest=LONGEST_REASON)
            )
        else:
            is_decided = await decide("")
        if is_decided:
            self._decided = block
            self._choose_next_asked()

    async def _tell_decision(self, block: str, decision: str, reason: str) -> bool:
        params = {"block_id": block, "decision": decision}
        if reason:
            params["reason"] = reason
        return await self._kernel.call("permission.decide", params, "Not decided") is not None

    def action_next_cell(self) -> None:
        self._move(partial(self.cells.focus_neighbour, 1), LAST_CELL)

    def action_previous_cell(self) -> None:
        self._move(partial(self.cells.focus_neighbour, -1), FIRST_CELL)

    def action_first_cell(self) -> None:
        self._goes_first = self._session.omitted > 0
        if self._goes_first:
            self.read_all()
            self.cells.first_cell()
            self.hint(self._earlier_words)
        else:
            self._move(self.cells.first_cell, FIRST_CELL)

    def action_last_cell(self) -> None:
        self._move(self.cells.last_cell, LAST_CELL)

    def action_line_down(self) -> None:
        self._move(partial(self.shown_cells.scroll_rows, 1), PAGE_END)

    def action_line_up(self) -> None:
        self._move(partial(self.shown_cells.scroll_rows, -1), PAGE_START)

    def action_half_page_down(self) -> None:
        self._move(partial(self.shown_cells.half_page, 1), PAGE_END)

    def action_half_page_up(self) -> None:
        self._move(partial(self.shown_cells.half_page, -1), PAGE_START)

    def action_page_down(self) -> None:
        self._move(partial(self.shown_cells.page, 1), PAGE_END)

    def action_page_up(self) -> None:
        self._move(partial(self.shown_cells.page, -1), PAGE_START)

    @on(HintBar.Clicked)
    def action_tail(self) -> None:
        editor = self.area.editor
        if editor is None:
            self._move(self.shown_cells.to_tail, PAGE_END)
            return
        before = editor.cursor_offset
        editor.action_text_end()
        if editor.cursor_offset == before:
            self.hint("This is the end of the cell.")

    def _move(self, move: Callable[[], object], at_the_end: str) -> None:
        """Move in the page, or say why nothing has moved."""
        before = self._position()
        move()
        if self._position() == before:
            if self._session.omitted and at_the_end in (FIRST_CELL, PAGE_START):
                at_the_end = self._earlier_words
            self.hint(at_the_end if before[1] else NO_CELL)

    @property
    def _earlier_words(self) -> str:
        return EARLIER_CELLS if self._session.is_live else EARLIER_OFFLINE

    def _position(self) -> tuple[object, ...]:
        self.shown_cells.layout_now()
        viewport = self.shown_cells.viewport
        seen = tuple(place for place in viewport.places if place is not None)
        # Elsewhere nobody sees which cell it is.
        focused = self.shown_cells.focused_cell if self.mode is Mode.NAVIGATE else None
        return focused, seen

    @on(LiveStrip.Clicked)
    def action_to_writer(self) -> None:
        before = self._position()
        if not self._following.come():
            self._live.go()
        if self._position() == before:
            self.hint("Nobody writes out of sight.")

    def action_follow(self) -> None:
        if self._has_stopped_following:
            return
        meant = self._following.in_cell(self.cells.focused_cell)
        if meant is not None:
            self.follow(meant.principal)
        elif self.to_follow:
            names = join_names([displayable_in_a_row(one.username) for one in self.to_follow])
            self.hint(f"Nobody is in this cell: Ctrl+P, Follow, for {names}.")
        else:
            self.hint("Nobody else is here to be followed.")

    def action_point(self) -> None:
        before = self._following.pointer
        if not self._following.point():
            self.hint("There is no line to point at.")
        elif self._following.pointer == before:
            self.hint("You point at it: there is no other line of the cell here.")

    def action_gather(self) -> None:
        self._following.gather()
        self.hint("The others are asked to come here.")

    def action_fold(self) -> None:
        block = self.cells.focused_cell
        if block is None:
            self.hint(NO_CELL)
            return
        for one in self._results_of(block) or [block]:
            self.cells.toggle_fold(one)

    def action_fold_thinking(self) -> None:
        before = self._position()
        if not self.cells.fold_all_thinking():
            self.hint("There is no thinking here.")
        elif self._position() == before:
            self.hint("The thinking is out of sight: all of it is folded, or opened, by this key.")

    def action_next_unread(self) -> None:
        if not self.cells.focus_unread(1):
            self.hint("Nothing unread below.")

    def action_previous_unread(self) -> None:
        if not self.cells.focus_unread(-1):
            self.hint("Nothing unread above.")

    # Finding

    def action_find(self) -> None:
        if self.mode is Mode.FIND:
            self.action_hit_below()
            return
        if self.mode in (Mode.WRITE, Mode.NAVIGATE):
            self._focused_before_find = self.focused
        self._find.open()
        if self.area.editor is None:
            self.read_all()

    action_find_text = action_find

    @on(FindBar.QueryChanged)
    def _query_changed(self, message: FindBar.QueryChanged) -> None:
        self._find.look_for(message.query)

    def action_next_hit(self) -> None:
        self._go_to_hit(1)

    def action_previous_hit(self) -> None:
        self._go_to_hit(-1)

    action_hit_below = action_next_hit
    action_hit_above = action_previous_hit

    def _go_to_hit(self, direction: int) -> None:
        if not self._find.is_open:
            self.hint("Nothing is searched for: / finds a text, then n and N go from hit to hit.")
            return
        before = self._position(), self._find.place
        if not self._find.go(direction):
            self.hint("There is no hit to go to.")
        elif (self._position(), self._find.place) == before:
            self.hint("This is the only hit.")

    def action_keep_hit(self) -> None:
        self._find.stay()

    def action_end_find(self) -> None:
        self._find.end()
        self._update()

    def action_leave_find(self) -> None:
        self._find.go_back()
        before = self.area.editor or self._focused_before_find
        if before is None or not before.is_attached:
            before = self.cells
        before.focus(scroll_visible=False)

    @work(exit_on_error=False)
    async def action_copy(self) -> None:
        block = self.cells.focused_cell
        text = None if block is None else self.source.text(block)
        if text:
            await self._copy(text)
        else:
            self.hint("There is nothing to copy in this cell.")

    # The kernel

    @requires_write
    @work(exit_on_error=False)
    async def action_undo(self) -> None:
        block = self._current_block()
        if block is None:
            if self.mode is not Mode.WRITE or not self.composer.draft.undo():
                self.hint("There is nothing to undo here.")
            return
        self._undone_theirs = None
        if await self._undo_arrangement(block):
            return
        self.source.ink.flash(block)
        if await self._text_undo.undo(block, self._place_name(block)):
            self._disarranged.clear()
            if self.mode is not Mode.WRITE:
                self._tour.undone()

    @on(CellEditor.UndoRequested)
    @requires_write
    def action_undo_edit(self) -> None:
        self.action_undo()

    @requires_write
    @work(exit_on_error=False)
    async def action_undo_theirs(self) -> None:
        block = self.cells.focused_cell
        if block is None:
            self.hint(NO_CELL)
            return
        author = self.source.header(block).author
        name, _ = self.source.name(author)
        if author == self.source.me:
            self.hint("This cell is yours: u takes back your own edit.")
            return
        there = await self._text_undo.apply("block.undo", block, author, name, preview=True)
        if there is None:
            return
        what = f"{there.amount} by {name}, {there.age}?"
        is_streaming = self._is_streaming(author)
        question = f"Stop {name}, then take back {what}" if is_streaming else f"Take back {what}"
        if not await self.app.push_screen_wait(ConfirmModal(question)):
            return
        if self._is_streaming(author):
            await self._interrupt(InterruptTarget(author, name))
        self.source.ink.flash(block)
        place = self._place_name(block)
        if await self._text_undo.undo(block, place, principal=author, name=name):
            self._undone_theirs = (block, author)

    @on(CellEditor.RedoRequested)
    @requires_write
    @work(exit_on_error=False)
    async def action_redo(self) -> None:
        block = self._current_block()
        theirs, self._undone_theirs = self._undone_theirs, None
        if block is None:
            if self.mode is not Mode.WRITE or not self.composer.draft.redo():
                self.hint("There is nothing to redo here.")
            return
        self.source.ink.flash(block)
        if theirs is not None and theirs[0] == block:
            name, _ = self.source.name(theirs[1])
            await self._text_undo.redo(block, principal=theirs[1], name=name)
        elif not await self._redo_arrangement(block):
            await self._text_undo.redo(block, self._place_name(block))

    @work(exit_on_error=False)
    async def action_blame(self) -> None:
        if not any(self.cells.viewport.places):
            self.hint(NO_CELL)
        await self._blame.toggle()

    def action_history(self) -> None:
        self._show_history(self.cells.focused_cell)

    def action_page_history(self) -> None:
        self._show_history(None)

    @work(exit_on_error=False)
    async def _show_history(self, block: str | None) -> None:
        """Go through the versions of a cell, or of the page, and do what is chosen there."""
        document, source = self._session.document, self.source
        order = [one for one in document.block_ids() if not source.is_hidden(one)]
        numbers = {one: self._number_of(one) for one in source.ids()}

        def title(block: str) -> tuple[str, int]:
            header = source.header(block)
            name, colour = source.shown_name(header.author)
            kind = header.kind.replace("_", " ")
            return f"{name} ¶{numbers.get(block, 0)} {kind}", colour

        asked = HistorySource(
            partial(read_steps, self._kernel),
            partial(read_timeline, self._kernel),
            source.shown_name,
            title,
            order,
        )
        choice = await self.app.push_screen_wait(HistoryModal(asked, block))
        if choice is None:
            return
        if self.user.refusal is not None:
            self.hint(self.user.refusal)
        elif choice.wish is Wish.FORK:
            here = document.context or ""
            made = await fork_context(self._kernel, here, at=choice.version)
            if made is not None:
                self._switch_context(made, None)
        else:
            params = {"block_id": choice.block, "version": choice.version}
            if await self._kernel.call("block.restore", params, "Not restored") is not None:
                place = f"¶{numbers.get(choice.block, 0)}"
                self.hint(f"{place} is as in its version {choice.version}; u takes that back.")

    def action_reading(self) -> None:
        block, model = self.cells.focused_cell, None
        if block is not None:
            author = self._session.document.header(block).author
            member = self._session.document.member(author)
            if member is not None and member.kind == PrincipalKind.MODEL:
                model = author
        actions = partial(KernelCalls, self._session)
        self.app.push_screen(ReadingPanel(actions, model, self.source.changed))

    @work(exit_on_error=False)
    async def action_interrupt(self) -> None:
        selected = self._selection()
        if selected:
            await self._copy(selected)
            return
        # A turn that has just been asked for is not seen yet.
        target = self._interrupt_target() or InterruptTarget(None, "all")
        if not self._session.is_live:
            self.hint("Offline: what runs can be stopped when the kernel is back. Ctrl+Q quits.")
        elif self.user.refusal is not None:
            self.hint(self.user.refusal)
        else:
            await self._interrupt(target)

    async def _interrupt(self, target: InterruptTarget) -> None:
        params: dict[str, Any] = {"context": self._session.document.context}
        if target.principal is not None:
            params["principal"] = target.principal
        result = await self._kernel.call("turn.interrupt", params, "Not stopped")
        if result is not None and not result.get("stopped"):
            self.hint("Nothing is running. <key:quit> quits.")

    # Contexts

    def action_contexts(self) -> None:
        here = self._session.document.context or ""
        self.app.push_screen(
            ContextsPanel(
                partial(KernelCalls, self._session),
                self._memory.seen,
                here,
                lambda context: self.open_context(context) if context != here else None,
            )
        )

    def action_people(self) -> None:
        def copy(text: str) -> None:
            self.run_in_background(self._copy(text))

        def colour(principal: str) -> int:
            return self.source.name(principal)[1]

        actions = partial(KernelCalls, self._session)
        self.app.push_screen(
            PeoplePanel(actions, self.source.me, colour, self._follow_if_here, copy)
        )

    def _follow_if_here(self, principal: str) -> bool:
        """Follow somebody who is in a cell; whether that is so."""
        is_here = any(one.principal == principal for one in self.to_follow)
        if is_here:
            self.follow(principal)
        return is_here

    def action_sidebar(self) -> None:
        """Into the sidebar, which comes if it is not there; from inside, put it away."""
        frame = self._frame
        is_inside = frame.has_sidebar and frame.sidebar.has_focus
        if is_inside:
            self._leave_sidebar()
        if (is_inside or not frame.has_sidebar) and frame.toggle_sidebar(self.size):
            self._update_sidebar()
            if self.size.width >= WIDE:
                # In a narrow terminal it comes for a moment, to choose a context.
                self.post_message(self.SettingChosen("sidebar", frame.has_sidebar))
        if is_inside:
            return
        if frame.has_sidebar:
            frame.sidebar.focus()
        else:
            self.hint("There is no room for the sidebar in a terminal this narrow.")

    def action_outline(self) -> None:
        if self._frame.toggle_outline(self.size):
            self.outline.request()
            self.post_message(self.SettingChosen("outline", self._frame.has_outline))
        else:
            self.hint(f"The outline needs a terminal of {OUTLINE_FROM} columns or more.")

    def action_settings(self) -> None:
        chosen = "Theme, sidebar and outline are chosen in the palette."
        if self._session.is_guest:
            self.hint(f"{chosen} Over SSH there are no other settings.")
            return
        file = under_home(config_folder() / SETTINGS_FILE)
        self.hint(f"{chosen} Keys and the rest: {file}, read at the start. See `antiphon keys`.")

    def action_next_context(self) -> None:
        self._choose_context(1)

    def action_previous_context(self) -> None:
        self._choose_context(-1)

    def _choose_context(self, step: int) -> None:
        sidebar = self._frame.sidebar
        before = sidebar.chosen
        sidebar.choose(step)
        if sidebar.chosen == before:
            self.hint(f"This is the {'last' if step > 0 else 'first'} context.")

    def action_open_context(self) -> None:
        self.open_context(self._frame.sidebar.chosen)

    def action_leave_contexts(self) -> None:
        self._leave_sidebar()

    @on(Sidebar.ContextClicked)
    def _context_clicked(self, message: Sidebar.ContextClicked) -> None:
        self.open_context(message.context)

    @on(Sidebar.PersonClicked)
    def _person_clicked(self, message: Sidebar.PersonClicked) -> None:
        self._leave_sidebar()
        self.follow(message.principal)

    def open_context(self, context: str) -> None:
        """Show a context, which needs the kernel; the one that is shown is gone back to."""
        if context == self._session.document.context:
            self._leave_sidebar()
        elif not self._session.is_live:
            self.hint("Offline: another context needs the kernel; try again when it is back.")
        else:
            self._switch_context(context, None)

    @work(exit_on_error=False)
    async def action_decide_key(self) -> None:
        """Ask about the oldest key that waits, and tell the kernel."""
        key = self._key_requests.first
        if key is None:
            return
        self._frame.notice.clear_hint()  # which tells of it
        role = await self.app.push_screen_wait(KeyModal(key.words))
        if role is None:
            return
        self._key_requests.forget(key.request)
        asked = {"request": key.request, "role": role}
        decided = await self._kernel.call("key.decide", asked)
        if decided is not None:
            name = decided.get("username")
            self.hint(f"{name} may come in as {role}." if name else "Turned away.")

    @work(exit_on_error=False)
    async def action_join_again(self) -> None:
        """Show this context anew, over another connection; what is shown stays if that fails."""
        try:
            await self._session.check_access()
        except AntiphonError as error:
            self.hint(error.message)
            return
        self._switch_context(self._session.document.context or self._frame.header.context, None)

    # The program

    def action_help(self) -> None:
        self.app.push_screen(TextModal(partial(help_rows, self.keymap)))

    action_show_help = action_help

    def action_hints(self) -> None:
        self.app.push_screen(TextModal(partial(hint_rows, self._hints)))

    def action_refused(self) -> None:
        refused = self._session.status.refused
        if refused is not None:
            self.looked_at = refused
            self.app.push_screen(TextModal(partial(rejected_rows, refused)))

    def action_palette(self) -> None:
        self.app.action_command_palette()

    @work(exit_on_error=False)
    async def action_quit(self) -> None:
        await self.app.action_quit()


def command_in(stored: str | None) -> str | None:
    """The command in a tool call's stored input, if it is one of a shell."""
    command = (arguments_of(stored) or {}).get("command")
    return command if isinstance(command, str) else None
