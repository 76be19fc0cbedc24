"""The contexts on the screen: a conversation and a file, each with its session and document."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

from textual.app import App
from textual.worker import WorkerError, WorkType, get_current_worker

from antiphon.input_queue import HELD_SECONDS, InputQueue
from antiphon.locations import state_folder, under_home
from antiphon.options import DEMO, AppOptions, kernel_name, place_name
from antiphon.project_files import KernelFile, ProjectFiles
from antiphon.screens.background_tasks import wait_until
from antiphon.screens.conversation_screen import ConversationScreen, fit_pages, shown_pages
from antiphon.screens.file_part import FilePartModal
from antiphon.screens.modals import rejected_location
from antiphon.screens.view_restorer import Destination
from antiphon.screens.view_state import ViewStateStore
from antiphon.session import ConnectionStatus, ReplaySession, Session
from antiphon.textual_patches.screens import (
    forget_first_screen,
    move_screens,
    swap_screens,
    take_out,
)
from antiphon.widgets.composer import DraftSync, PrivateDraftFile
from antiphon_kernel.document.document import Document
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.text.transform import shift_through
from antiphon_kernel.types.constants import DEFAULT_CONTEXT
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import join_names, quote
from antiphon_kernel.yjs.close_codes import CloseCode

_MODE_NUMBERS = count()

KNOWN_SECONDS = 1.0
"""How long keys wait for the kernel to say who the person is, after it has refused something."""


class ShownContext:
    """Shows one context after the other, and a context anew when its document is replaced.

    A file has a page of its own, beside that of the conversation or over it.
    """

    def __init__(
        self,
        app: App[None],
        options: AppOptions,
        memory: ViewStateStore,
        keys: InputQueue,
        new_draft: Callable[..., DraftSync],
        new_screen: Callable[[ShownContext], ConversationScreen],
        file: KernelFile | None = None,
        files: ProjectFiles | None = None,
    ) -> None:
        """`file` and `files` are those of a page for files."""
        self._app = app
        self._new_screen = new_screen
        self._screen: ConversationScreen | None = None
        self._memory = memory
        self._keys = keys
        self._new_draft = new_draft
        self._returning = False
        self._is_context_named = options.context is not None
        """The person has named the context, and it has not been seen yet."""
        self.label: str | None = None
        if options.context is None and options.replay is None:
            last = memory.last_context()
            options = replace(options, context=last or DEFAULT_CONTEXT)
            self._returning = last is not None
        self.options = options
        self.is_leaving = False
        """The person has said that they leave, with what is not on the kernel."""
        self.session = self._new_session(options)
        self.file = file
        """The file that is shown; None if a conversation is."""
        self.file_page: ShownContext | None = None
        """The page of a file beside that of the conversation."""
        self.visits: list[Destination] = []
        """The files before this one, the last one first to go to."""
        self._wanted_file = options.file
        """The path that the app was started with, until it has been opened, and a line."""
        self.files = files or ProjectFiles(self, self.session.project)
        self.draft = new_draft(self.session.document, private=self._private_file())
        self._replacements = 0
        """New documents that are to be shown, or are just being shown."""
        self._replacing = asyncio.Lock()
        self._resuming: Callable[[ConversationScreen], None] | None = None
        """The person's place, from the first of these documents to the last."""

    @property
    def screen(self) -> ConversationScreen:
        assert self._screen is not None
        return self._screen

    def new_screen(self) -> ConversationScreen:
        screen = self._screen = self._new_screen(self)
        return screen

    @property
    def front(self) -> ShownContext:
        """The page that keys go to."""
        page, shown = self.file_page, shown_pages(self._app)
        return page if page is not None and shown and shown[-1] is page.screen else self

    @property
    def pages(self) -> Sequence[ShownContext]:
        return [self, *([] if self.file_page is None else [self.file_page])]

    @property
    def name(self) -> str:
        """Return the context's name until its document says it."""
        named = self.label or self._memory.place(self.options.context).label
        return named or self.options.context or DEFAULT_CONTEXT

    def _start_work(self, work: WorkType[None], name: str = "", group: str = "default") -> None:
        """Do this beside everything else; of a function Python does not warn if it is dropped."""
        self._app.run_worker(work, name=name, group=group)

    def _new_session(self, options: AppOptions) -> Session:
        session = Session(options) if options.replay is None else ReplaySession(options)
        session.replica.document_replaced.listen(self._document_replaced)
        session.changed.listen(self._standing_changed)
        return session

    def _standing_changed(self) -> None:
        """The context that was open last may be gone."""
        standing = self.session.status
        if self.session.start_failure is not None:
            if not self.is_leaving:
                self.is_leaving = True
                self._start_work(self._app.action_quit, name="no kernel")
        elif standing.connection is ConnectionStatus.LIVE:
            self._returning = self._is_context_named = False
            self.is_leaving = self.is_leaving and standing.is_silent
            if self._wanted_file is not None:
                wanted, self._wanted_file = self._wanted_file, None
                self.open_file(*wanted)
        elif standing.connection is ConnectionStatus.REFUSED and self._returning:
            self._returning = False
            self.open(DEFAULT_CONTEXT)
        elif self._is_context_named and self.session.replica.rejection_code == CloseCode.NOT_FOUND:
            self._is_context_named = False
            self._start_work(self._exit_without_context, name="no such context")

    async def _exit_without_context(self) -> None:
        """Leave with the names of the contexts that there are."""
        message = f"There is no context {quote(self.options.context or '')}."
        with suppress(AntiphonError):
            async with self.options.connect() as calls:
                listed = await calls.call("context.list", {})
            labels = join_names([str(one["label"]) for one in listed["contexts"]])
            message += f" There are: {labels}."
        await self.session.close()
        self._app.exit(return_code=1, message=sanitize(f"antiphon: {message}"))

    def _private_file(self) -> PrivateDraftFile | None:
        """Return the file of the private draft; None beside a file, and in a passing demo."""
        is_kept = place_name(self.options) != DEMO and self.options.replay is None
        if not is_kept or self.file is not None:
            return None
        return PrivateDraftFile(state_folder(), kernel_name(self.options))

    def open(
        self, context: str, block: str | None = None, query: str = "", version: int | None = None
    ) -> None:
        page = self.file_page
        if page is not None and page.file is not None and page.file.context == context:
            page.go(Destination(context, page.file))
            return
        self.go(Destination(context, block=block, query=query, version=version))

    def go(self, visit: Destination) -> None:
        work: WorkType[None] = partial(self._show_context, visit, self._keys.hold())
        self._app.run_worker(work, name="another context", exclusive=True)

    def open_file(self, path: str, line: int | None = None) -> None:
        """Show a file, at a line if one is given, on the page for files."""
        work: WorkType[None] = partial(self._open_file, path, line, self._keys.hold())
        self._app.run_worker(work, name="a file", group="files", exclusive=True)

    async def _open_file(
        self, path: str, line: int | None, release_keys: Callable[[], None]
    ) -> None:
        try:
            file = KernelFile.of(await self.session.call("file.open", {"path": path}))
        except AntiphonError as error:
            await self._show_part(path, error)
            release_keys()
            return
        self.files.opened(file.path)
        visit, page = Destination(file.context, file, file.block, line=line), self.file_page
        if page is None:
            options = replace(self.options, context=file.context, file=None)
            page = ShownContext(
                *(self._app, options, self._memory, self._keys, self._new_draft),
                *(self._new_screen, file, self.files),
            )
            page.label = file.path
            try:
                await page._arrive(visit)
            finally:
                self.file_page = page if page._screen is not None else None
        elif page.file is not None and page.file.context != file.context:
            page.visits = [one for one in page.visits if one.context != file.context]
            page.visits.append(Destination(page.file.context, page.file))
            await page._show_context(visit, release_keys)
        elif line is not None:
            page.screen.area.go_to_line(file.block, line)
        self.come(page)
        release_keys()

    async def _show_part(self, path: str, refusal: AntiphonError) -> None:
        """Show a file that is too large to be opened, or no text; else say why it is not opened."""
        if refusal.code in (ErrorCode.TOO_LARGE, ErrorCode.INVALID_PARAMS):
            with suppress(AntiphonError):  # the refusal says more
                part = await self.session.call("file.part", {"path": path})
                self._app.push_screen(FilePartModal(self.session, part, refusal.message))
                return
        self.front.screen.hint(refusal.message)

    def go_back(self) -> None:
        """Show the file before this one, or else the conversation alone."""
        page = self.file_page
        if page is not None and page.visits:
            page.go(page.visits.pop())
        elif page is not None:
            self._start_work(partial(self._close, page, self._keys.hold()), name="no file")

    async def _close(self, page: ShownContext, release_keys: Callable[[], None]) -> None:
        """Show the conversation alone, when what was written in the file is on the kernel."""
        if page.session.is_live:
            with suppress(AntiphonError):  # leaving it writes down what was refused
                await page.session.replica.saved()
        async with page._replacing:
            if page is self.file_page:
                self.file_page, mode = None, f"document-{next(_MODE_NUMBERS)}"
                self._app.add_mode(mode, self.new_screen)
                take_out(self._app, page.screen, mode)
                fit_pages(self._app)
                page.screen.retire()
                removal = partial(page._remove_screen, mode, page.screen, False)
                self._start_work(removal, group="screens before")
                leaving = partial(page._leave, page.session, page.draft)
                self._start_work(leaving, group="sessions before")
        release_keys()

    def come(self, page: ShownContext | None = None, action: str = "") -> None:
        """Bring a page to the front, or else the other one, and do an action there."""
        if self.file_page is None:
            if page is None:
                self.screen.hint("No file is open: <key:files> finds one.")
            return
        if page is not self.front:
            swap_screens(self._app, self.screen, self.file_page.screen)
        fit_pages(self._app)
        if action:
            self.front.screen.call_action(action)

    async def _show_context(self, visit: Destination, release_keys: Callable[[], None]) -> None:
        """Everything that was written in the one before is on the kernel's disk first."""
        context, file = visit.context, visit.file
        before = self.session
        if before.is_live:
            with suppress(AntiphonError):  # leaving it writes down what was refused
                await before.replica.saved()
            if file is None:
                await self.screen.contexts.refresh()
        async with self._replacing:  # else the message goes on in the other context
            before, draft = self.session, self.draft
            self.file = file
            self.label = file.path if file else self.screen.contexts.label_of(context)
            self.options = replace(self.options, context=context, replay=None)
            self.session = self._new_session(self.options)
            try:
                await self._arrive(visit)
            finally:
                self._start_work(partial(self._leave, before, draft), group="sessions before")
        if file is None:
            self.come(self)
        try:
            await wait_until(self._is_ready_for_keys, HELD_SECONDS)
        finally:  # also for a person who goes elsewhere meanwhile
            release_keys()

    def _is_ready_for_keys(self) -> bool:
        """Return whether cells of the context are shown, or none are being loaded."""
        awaited = (ConnectionStatus.CONNECTING, ConnectionStatus.CATCHING_UP)
        return self.screen.view.is_restored or self.session.status.connection not in awaited

    async def _arrive(self, visit: Destination) -> None:
        """Show the document of the new session, at the place that is wanted."""
        try:
            await self._show_document()
        finally:  # also for a person who wants to be elsewhere meanwhile
            if (visit.block or visit.version) is not None and self._screen is not None:
                self.screen.view.arrive(visit)
            around = visit.block or self._memory.place(visit.context).block
            self.session.start(around if visit.file is None else None)

    async def _leave(self, session: Session, draft: DraftSync) -> None:
        """Close the session of a context that is not shown any more."""
        try:
            kept = await session.leave(draft.unheard)
        except AntiphonError as error:
            self.screen.hint(error.message, weighty=True)
            return
        if kept is not None:
            self.screen.hint(not_confirmed(kept), weighty=True)

    def _document_replaced(self) -> None:
        """Keys wait from this moment on: the editors that there are write into the old document."""
        self._keys.pause()
        self._replacements += 1
        # Not in the group of `open`, which would cancel it: keys would wait forever.
        self._start_work(self._replace_document, name="the document anew", group="documents")

    async def _replace_document(self) -> None:
        """Show the new document at the person's place; one after the other, if there are more."""
        try:
            async with self._replacing:
                # Else it is shown already, or that of another context is.
                if self.screen.source.document is not self.session.document:
                    await self._go_on_in_new_document()
        finally:
            self._replacements -= 1
            if not self._replacements:
                self._resuming = None
            self._keys.resume()

    async def _go_on_in_new_document(self) -> None:
        """Show the new document, with what was written into the one before too late."""
        before = self.screen
        # The message is not in it: the next draft takes that over as it is.
        document, editor = before.source.document, before.area.editor
        known = None if editor is None else document.text(editor.block)
        await self._keys.caught_up()
        is_late = False
        if editor is not None and known is not None:
            text = document.text(editor.block)
            is_late = text != known
            repeat_edits(self.session.document, editor.block, known, text)
        if self._resuming is None:
            self._resuming = before.leave_place()
        before.view.keep()
        await self._show_document(before)
        drawn = asyncio.Event()
        self.screen.call_after_refresh(drawn.set)
        await drawn.wait()
        self._resuming(self.screen)
        focused = asyncio.Event()
        self._app.call_later(focused.set)  # behind the focus, which Textual sets later, too
        await focused.wait()
        if not is_late:  # what was written already is brought to the kernel, come what may
            # Else somebody who may not write any more, and types on, would be refused again.
            session = self.session
            await wait_until(lambda: session.is_live and session.me is not None, KNOWN_SECONDS)

    async def _show_document(self, same_context: ConversationScreen | None = None) -> None:
        """Show the session's document; the message of a screen of the `same_context` goes on."""
        while same_context is None and not isinstance(self._app.screen, ConversationScreen):
            await self._app.screen.dismiss(None)  # so that whoever has asked there goes on
        if same_context is not None:
            self.draft = self._new_draft(self.session.document)
            self.draft.succeed(same_context.composer.draft)
        else:
            self.draft = self._new_draft(self.session.document, private=self._private_file())
        before, mode_before = self._screen, self._app.current_mode
        mode = f"document-{next(_MODE_NUMBERS)}"
        self._app.add_mode(mode, self.new_screen)
        mounted = self._app.switch_mode(mode)
        move_screens(self._app, mode_before, before)
        fit_pages(self._app)
        await mounted
        if before is not None:
            before.retire()
        removal = partial(self._remove_screen, mode_before, before, same_context is not None)
        self._start_work(removal, group="screens before")
        refused = self.session.status.refused
        if refused is not None:
            self.screen.hint(rejected_location(refused), weighty=True)

    async def _remove_screen(
        self, mode: str, screen: ConversationScreen | None, is_replaced: bool
    ) -> None:
        """Take away a screen that is not shown any more, when all is done that was begun there.

        Args:
            is_replaced: whether its session goes on, with another document.
        """
        works = self._app.workers if screen is not None else ()
        for work in [one for one in works if screen in one.node.ancestors_with_self]:
            with suppress(WorkerError):  # which the screen has told of
                await work.wait()
        if not get_current_worker().is_cancelled:  # Textual takes that for an end of the other's
            # Cancelled half-way, it would cancel the screen, for which Textual waits in its end.
            await asyncio.shield(self._app.remove_mode(mode))
            forget_first_screen(self._app)
            if is_replaced and screen is not None:
                screen.source.document.close()  # else the CRDT keeps it in memory


def repeat_edits(document: Document, block: str, before: str, after: str) -> None:
    """Make the changes from `before` to `after` in a block of a document, if it is there."""
    if block not in document:
        return
    for one in plan_difference(before, after):
        others = plan_difference(before, document.text(block))
        start, end = (
            shift_through(place, others, stick="right")
            for place in (one.offset, one.offset + one.deleted)
        )
        document.splice(block, start, end - start, one.inserted)
        before = before[: one.offset] + one.inserted + before[one.offset + one.deleted :]


def not_confirmed(file: Path) -> str:
    """Say where the text is that the kernel refused, or may not have saved."""
    return f"The kernel has not confirmed what is in {under_home(file)}"
