"""The widgets of the conversation screen in their places, with the actions that work anywhere."""

from __future__ import annotations

from functools import partial

from textual import on, work

from antiphon.keymap import KeyMap
from antiphon.locations import config_folder, under_home
from antiphon.screens.action_owner import ActionOwner
from antiphon.screens.document_page import DocumentPage
from antiphon.screens.layout import OUTLINE_FROM, DocumentLayout
from antiphon.screens.message_composer import MessageComposer
from antiphon.screens.modals import PAGE_END, TextModal, help_rows, hint_rows, rejected_rows
from antiphon.screens.panels import ContextsPanel, PeoplePanel
from antiphon.session import Session
from antiphon.settings import SETTINGS_FILE, Settings
from antiphon.widgets.block_list import CellModel
from antiphon.widgets.composer import DraftSync
from antiphon.widgets.outline import Outline
from antiphon.widgets.status import HintBar, HintLog, LiveStrip
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.errors import AntiphonError


class ConversationFrame(DocumentLayout, ActionOwner):
    """Layout that opens pages over the document, and moves and finds in it."""

    area: DocumentPage
    composer: MessageComposer

    def __init__(
        self,
        session: Session,
        draft: DraftSync,
        hints: HintLog,
        keymap: KeyMap,
        *,
        place: str,
        settings: Settings,
        clock: Clock | None,
        is_file: bool = False,
    ) -> None:
        source = CellModel(
            session.document, presence=session.presence, user=session.user, clock=clock
        )
        source.ink.is_shown = settings.ink
        source.gutter = settings.gutter
        source.is_file = is_file
        source.name_keys = keymap.name_keys
        composer = MessageComposer(draft, session.user)
        composer.disabled = is_file
        super().__init__(
            DocumentPage(source), composer, hints, keymap, place=place, settings=settings
        )
        self.set_class(is_file, "-file")
        self._session = session

    def action_write(self) -> None:
        if self.area.source.is_file:
            self.area.action_edit()
            return
        refusal = self.area.source.user.refusal
        if refusal is not None and not self.composer.draft.text:
            self.hint(refusal)
        else:
            self.composer.editor.focus()

    def action_open_paste(self) -> None:
        editor = self.parts.scope.editor
        if editor is None or not editor.document.labels:
            self.hint("No label stands for a pasted text here.")
        else:
            editor.unfold_at_cursor()

    # Moving

    def action_page_down(self) -> None:
        self.parts.cells.move_page(1)

    def action_page_up(self) -> None:
        self.parts.cells.move_page(-1)

    @on(HintBar.CountClicked)
    def action_tail(self) -> None:
        editor, cells = self.area.editor, self.area.cells
        if editor is None:
            cells.move(cells.to_tail, PAGE_END)
            return
        before = editor.cursor_offset
        editor.action_text_end()
        if editor.cursor_offset == before:
            self.hint("This is the end of the cell.")

    @on(LiveStrip.StripClicked)
    def action_to_writer(self) -> None:
        before = self.area.cells.position()
        if not self.parts.following.come():
            self.parts.live.go()
        if self.area.cells.position() == before:
            self.hint("Nobody writes out of sight.")

    # Outline

    def action_outline(self) -> None:
        self.wants_outline = not self.wants_outline
        self.fit(self.screen.size)
        if self.size.width >= OUTLINE_FROM:
            self.parts.outline.request()
            self.choose("outline", self.has_outline)
        else:
            self.hint(f"The outline needs a terminal of {OUTLINE_FROM} columns or more.")

    @on(Outline.EntryClicked)
    def _outline_clicked(self, message: Outline.EntryClicked) -> None:
        self.parts.outline.go(message.entry)

    # Pages over the document

    def action_contexts(self) -> None:
        self.app.push_screen(ContextsPanel(self.parts.scope, self.parts.sidebar.open_context))

    def action_people(self) -> None:
        self.app.push_screen(PeoplePanel(self.parts.scope, self.parts.following))

    def action_settings(self) -> None:
        chosen = "Theme, sidebar and outline are chosen in the palette."
        if self._session.options.is_guest:
            self.hint(f"{chosen} For guests there are no other settings.")
            return
        file = under_home(config_folder() / SETTINGS_FILE)
        self.hint(f"{chosen} Keys and the rest: {file}, read at the start. See `antiphon keys`.")

    @work(exit_on_error=False)
    async def action_join_again(self) -> None:
        """Show this context anew, over another connection; what is shown stays if that fails."""
        try:
            async with self._session.options.connect() as calls:
                await calls.call("session.whoami", {})
        except AntiphonError as error:
            self.hint(error.message)
            return
        self.parts.scope.open_context(self._session.document.context or self.header.context)

    def action_help(self) -> None:
        self.app.push_screen(TextModal(partial(help_rows, self.parts.scope.keymap)))

    action_show_help = action_help

    def action_hints(self) -> None:
        self.app.push_screen(TextModal(partial(hint_rows, self.parts.hints)))

    def action_refused(self) -> None:
        refused = self._session.status.refused
        if refused is not None:
            self.parts.people.looked_at = refused
            self.app.push_screen(TextModal(partial(rejected_rows, refused)))

    def action_palette(self) -> None:
        self.app.action_command_palette()

    @work(exit_on_error=False)
    async def action_quit(self) -> None:
        await self.app.action_quit()
