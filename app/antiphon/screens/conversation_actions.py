"""Table of what the actions of the conversation do, and those that work anywhere in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from textual.screen import Screen

from antiphon.actions import Mode
from antiphon.locations import config_folder, under_home
from antiphon.screens.cell_actions import CellActions
from antiphon.screens.context_search import choose_found
from antiphon.screens.conversation_controllers import ConversationControllers
from antiphon.screens.layout import OUTLINE_FROM
from antiphon.screens.message_actions import MessageActions
from antiphon.screens.modals import TextModal, help_rows, hint_rows, rejected_rows
from antiphon.screens.panels import ContextsPanel, PeoplePanel
from antiphon.settings import SETTINGS_FILE
from antiphon_kernel.types.errors import AntiphonError


class ConversationActions:
    """Opens pages over the conversation, and moves and finds in it."""

    def __init__(self, parts: ConversationControllers) -> None:
        self._parts = parts
        self._scope = parts.scope
        self._session = parts.scope.session
        self._hint = parts.scope.hint
        self._messages = MessageActions(parts)
        self._on_cell = CellActions(parts, self._messages)

    def table(self) -> Mapping[str, Callable[[], object]]:
        """Return what each action does, by its name; coroutines are run in the background."""
        parts, messages, on_cell = self._parts, self._messages, self._on_cell
        arranger, versions, find = parts.arranger, parts.versions, parts.find
        return {
            "send": messages.send,
            "newline": parts.composer.editor.new_line,
            "navigate": messages.navigate,
            "message_history": messages.offer_history,
            "private": messages.toggle_private,
            "keep_hit": find.stay,
            "leave_find": find.leave,
            "hit_below": partial(find.step, 1),
            "hit_above": partial(find.step, -1),
            "leave_contexts": parts.sidebar.leave,
            "back": parts.area.leave,
            "allow_once": partial(parts.questions.decide, "once"),
            "allow_always": partial(parts.questions.decide, "always"),
            "deny": partial(parts.questions.decide, "no"),
            "put": arranger.put,
            "leave_move": arranger.leave_move,
            "edit": on_cell.edit,
            "end_find": find.end,
            "next_hit": partial(find.step, 1),
            "previous_hit": partial(find.step, -1),
            "write": self.write,
            "interrupt": self.interrupt,
            "next_sibling": partial(parts.branches.go_to_sibling, 1),
            "previous_sibling": partial(parts.branches.go_to_sibling, -1),
            "undo": parts.undo.undo,
            "undo_theirs": parts.undo.undo_theirs,
            "blame": on_cell.toggle_blame,
            "history": on_cell.show_history,
            "send_again": on_cell.send_again,
            "answer_again": on_cell.answer_again,
            "reading": on_cell.show_reading,
            "cut_out": arranger.cut_out,
            "move": arranger.move,
            "exclude": arranger.exclude,
            "edit_outside": parts.outside.edit,
            "time": versions.tell_time,
            "split": arranger.split,
            "restore": versions.restore,
            "fork_here": versions.fork_here,
            "open_paste": self.open_paste,
            "undo_edit": parts.undo.undo,
            "redo": parts.undo.redo,
            "tail": self.to_tail,
            "to_writer": self.to_writer,
            "follow": parts.following.follow_who_is_in_cell,
            "point": parts.following.point,
            "copy": on_cell.copy,
            "copy_markdown": on_cell.copy_markdown,
            "copy_json": on_cell.copy_json,
            "edit_next": partial(on_cell.edit_neighbour, 1),
            "edit_previous": partial(on_cell.edit_neighbour, -1),
            "page_up": partial(parts.cells.move_page, -1),
            "page_down": partial(parts.cells.move_page, 1),
            "help": self.show_help,
            "show_help": self.show_help,
            "palette": self.open_palette,
            "contexts": self.show_contexts,
            "people": self.show_people,
            "find": self.find,
            "search": self.search,
            "find_text": self.find,
            "sidebar": parts.sidebar.toggle,
            "outline": self.toggle_outline,
            "settings": self.tell_settings,
            "hints": self.show_hints,
            "page_history": partial(versions.show_history, None),
            "bring_back": arranger.bring_back,
            "gather": parts.following.gather,
            "refused": self.show_refused,
            "decide_key": parts.visitors.decide,
            "join_again": self.join_again,
            "quit": self.quit,
        }

    def write(self) -> None:
        refusal = self._parts.source.user.refusal
        if refusal is not None and not self._parts.composer.draft.text:
            self._hint(refusal)
        else:
            self._parts.composer.editor.focus()

    def open_paste(self) -> None:
        editor = self._scope.editor
        if editor is None or not editor.document.labels:
            self._hint("No label stands for a pasted text here.")
        else:
            editor.unfold_at_cursor()

    async def interrupt(self) -> None:
        if selected := self._scope.selection:
            await self._on_cell.copy_text(selected)
        else:
            await self._parts.turns.interrupt()

    # Moving

    def to_tail(self) -> None:
        editor = self._parts.area.editor
        if editor is None:
            self._parts.cells.move_to_tail()
            return
        before = editor.cursor_offset
        editor.action_text_end()
        if editor.cursor_offset == before:
            self._hint("This is the end of the cell.")

    def to_writer(self) -> None:
        before = self._parts.cells.position()
        if not self._parts.following.come():
            self._parts.live.go()
        if self._parts.cells.position() == before:
            self._hint("Nobody writes out of sight.")

    # Finding

    def find(self) -> None:
        search = self._parts.find
        if self._scope.mode is Mode.FIND:
            search.step(1)
            return
        if self._scope.mode in (Mode.WRITE, Mode.NAVIGATE):
            search.focused_before = self._parts.frame.screen.focused
        search.open()
        if self._parts.area.editor is None:
            self._parts.earlier.read_all()

    async def search(self) -> None:
        if not self._session.is_live:
            self._hint("Offline: a search in all contexts needs the kernel; / finds in this one.")
            return
        found = await choose_found(self._scope)
        if found is None:
            return
        block, query = found
        context = block.partition(".")[0]
        is_here = context == self._session.document.context
        if not is_here or (self._session.omitted and block not in self._session.document):
            self._scope.open_context(context, block, query=query)
        elif self._parts.cells.has_cell(block):
            self._parts.area.leave()
            self._parts.find.find_from(block, query)

    def toggle_outline(self) -> None:
        frame = self._parts.frame
        if frame.toggle_outline(frame.screen.size):
            self._parts.outline.request()
            frame.choose("outline", frame.has_outline)
        else:
            self._hint(f"The outline needs a terminal of {OUTLINE_FROM} columns or more.")

    # Pages over the document

    def _show(self, page: Screen[Any]) -> None:
        self._scope.host.app.push_screen(page)

    def show_contexts(self) -> None:
        def show(context: str) -> None:
            if context != self._session.document.context:
                self._parts.sidebar.open_context(context)

        self._show(ContextsPanel(self._session, self._parts.memory, show))

    def show_people(self) -> None:
        host = self._scope.host

        def copy(text: str) -> None:
            host.run_in_background(partial(self._on_cell.copy_text, text))

        def follow_if_here(principal: str) -> bool:
            is_here = any(one.principal == principal for one in self._parts.following.others())
            if is_here:
                host.follow(principal)
            return is_here

        self._show(PeoplePanel(self._session, self._parts.source, follow_if_here, copy))

    def tell_settings(self) -> None:
        chosen = "Theme, sidebar and outline are chosen in the palette."
        if self._session.is_guest:
            self._hint(f"{chosen} Over SSH there are no other settings.")
            return
        file = under_home(config_folder() / SETTINGS_FILE)
        self._hint(f"{chosen} Keys and the rest: {file}, read at the start. See `antiphon keys`.")

    async def join_again(self) -> None:
        """Show this context anew, over another connection; what is shown stays if that fails."""
        try:
            await self._session.check_access()
        except AntiphonError as error:
            self._hint(error.message)
            return
        context = self._session.document.context or self._parts.frame.header.context
        self._scope.open_context(context, None)

    def show_help(self) -> None:
        self._show(TextModal(partial(help_rows, self._parts.keymap)))

    def show_hints(self) -> None:
        self._show(TextModal(partial(hint_rows, self._parts.hints)))

    def show_refused(self) -> None:
        refused = self._session.status.refused
        if refused is not None:
            self._parts.people.looked_at = refused
            self._show(TextModal(partial(rejected_rows, refused)))

    def open_palette(self) -> None:
        self._scope.host.app.action_command_palette()

    async def quit(self) -> None:
        await self._scope.host.app.action_quit()
