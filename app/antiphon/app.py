"""The app: themes, the session and the screen, and their beginning and end."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

from rich.console import Console, RenderableType
from textual import events, on
from textual.app import App
from textual.command import Command, CommandPalette
from textual.filter import LineFilter
from textual.theme import BUILTIN_THEMES
from textual.worker import WorkerError, WorkType, get_current_worker

from antiphon.attention import Attention
from antiphon.input_queue import InputQueue
from antiphon.locations import config_folder, state_folder, under_home
from antiphon.message_history import MessageHistory
from antiphon.options import AppOptions, kernel_name
from antiphon.palette import PaletteCommands, shown_theme
from antiphon.render.cell_theme import css_variables
from antiphon.render.links import WithoutLinks
from antiphon.screen_filter import NeutralText
from antiphon.screens.background_tasks import ReportsFailedTasks
from antiphon.screens.conversation_frame import ConversationFrame
from antiphon.screens.conversation_screen import ConversationScreen
from antiphon.screens.modals import rejected_location
from antiphon.screens.screen_state import ScreenState
from antiphon.screens.text_merge import repeat_edits
from antiphon.screens.view_state import ViewStateController, ViewStateStore
from antiphon.session import ConnectionStatus, Session
from antiphon.settings import SETTINGS_FILE, SettingsStore
from antiphon.terminal_title import PROGRAM
from antiphon.textual_patches.driver import (
    LONGEST_PASTE,
    BackgroundReported,
    InputPaused,
    PasteRefused,
    TerminalDriver,
    TerminalLost,
    is_linux_console,
)
from antiphon.textual_patches.screens import LaidOutPalette, forget_first_screen, move_covers
from antiphon.textual_patches.stylesheet import ParsedOnceStylesheet
from antiphon.themes import DEFAULT_THEME, LIGHT_THEME, bundled_themes_folder, load_themes
from antiphon.toml_files import FileProblem
from antiphon.tour import Tour
from antiphon.widgets.composer import DraftSync, PrivateDraftFile, random_seq
from antiphon.widgets.status import HintLog
from antiphon_kernel.client.rejected_edits import mark_untold
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.constants import DATA_FOLDER, DEFAULT_CONTEXT
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.quoting import count_of, join_names, quote
from antiphon_kernel.yjs.close_codes import CloseCode

DEMO = "demo"

END_SECONDS = 1.5
"""How long what is to be sent, or to be written down, may take when a signal ends the app."""

KNOWN_SECONDS = 1.0
"""How long keys wait for the kernel to say who the person is, after it has refused something."""


_INPUT = (
    events.Key | events.Paste | events.MouseDown | events.MouseScrollDown | events.MouseScrollUp
)
"""Events by which a person takes the view into their own hands."""


class AntiphonApp(App[None]):
    """One context of one kernel on one terminal."""

    TITLE = PROGRAM

    DEFAULT_MODE = "document"

    COMMANDS = {PaletteCommands}  # noqa: RUF012  the base class says what it is

    CSS = """
    * {
        scrollbar-size-vertical: 1;
        scrollbar-background: $background;
        scrollbar-background-hover: $background;
        scrollbar-background-active: $background;
        scrollbar-color: $cell-map-thumb;
        scrollbar-color-hover: $primary 60%;
        scrollbar-color-active: $primary;
    }
    CommandPalette > Vertical { margin-top: 1; width: 80; max-width: 100%; background: $surface; }
    CommandPalette #--input, CommandPalette #--input.--list-visible {
        border: none;
        padding: 1 2 0 2;
    }
    CommandPalette CommandInput, CommandPalette CommandInput:focus { border: none; height: 1; }
    CommandPalette SearchIcon { display: none; }
    CommandPalette CommandList, CommandPalette CommandList:focus {
        border: none;
        padding: 1 0;
        max-height: 75vh;
        background: $surface;
        scrollbar-background: $surface;
    }
    """

    def __init__(
        self,
        options: AppOptions,
        *,
        clock: Clock | None = None,
        new_seq: Callable[[], int] = random_seq,
        theme: str | None = None,
        place: str | None = None,
    ) -> None:
        """Tests pass the clock, the numbers of drafts, the theme and what the header says."""
        super().__init__(driver_class=TerminalDriver)
        self._neutral_text = NeutralText()
        self._without_links = WithoutLinks()
        # Standard error lets no escape sequence through to a terminal.
        self.error_console = Console(markup=False, highlight=False, stderr=True, color_system=None)
        self.animation_level = "none"
        self._options = options
        self._settings_store = SettingsStore(config_folder(), state_folder())
        self.settings = self._settings_store.read()
        self._problems = [*self._settings_store.problems, *register_themes(self)]
        self.theme = theme or self._chosen_theme()
        self.stylesheet = ParsedOnceStylesheet(variables=self.get_css_variables())
        self._theme_before: str | None = None
        """The theme in the place of which another one is shown while it is looked at."""
        self._asks_terminal = theme is None and self.settings.theme is None
        """The theme may still become one that fits the terminal."""
        self._memory = ViewStateController(
            None if place_name(options) == DEMO else ViewStateStore(state_folder(), options),
            self._notify_person,
        )
        self._returning = False
        self._is_context_named = options.context is not None
        """The person has named the context, and it has not been seen yet."""
        self._label: str | None = None
        if options.context is None:
            last = self._memory.last_context()
            options = self._options = replace(options, context=last or DEFAULT_CONTEXT)
            self._returning = last is not None
        self.session = self._new_session(options)
        self._clock = clock
        self._hints = HintLog()
        self._attention = Attention()
        self._new_draft = partial(
            DraftSync, clock=clock, new_seq=new_seq, notify=self._notify_person
        )
        self._draft = self._new_draft(self.session.document, private=self._private_file())
        self._leaving = False
        self._keys = InputQueue(self, self._hand_on)
        self._mode_numbers = count()
        self._replacements = 0
        """New documents that are to be shown, or are just being shown."""
        self._replacing = asyncio.Lock()
        self._resuming: ScreenState | None = None
        """The person's place, from the first of these documents to the last."""
        self.add_mode(self.DEFAULT_MODE, self.get_default_screen)  # else it is never removed
        self._place = place or place_name(options)

    def get_default_screen(self) -> ConversationScreen:
        return ConversationScreen(
            self.session,
            self._draft,
            place=self._place,
            context=self._label
            or self._memory.label(self._options.context)
            or self._options.context
            or DEFAULT_CONTEXT,
            tour=Tour() if self._options.demo else None,
            open_context=self._open_context,
            keys=self._keys,
            memory=self._memory,
            hints=self._hints,
            history=MessageHistory(state_folder(), kernel_name(self._options)),
            settings=self.settings,
            clock=self._clock,
        )

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the filter for each row of each widget: Textual's own, then ours, in one."""
        before = tuple(super().get_line_filters())
        if is_linux_console():
            before = (*before, self._without_links)
        if before != self._neutral_text.before:
            self._neutral_text = NeutralText(before)
        return (self._neutral_text,)

    @property
    def document_screen(self) -> ConversationScreen:
        screen = self.screen_stack[0]
        assert isinstance(screen, ConversationScreen)
        return screen

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.AppFocus | events.AppBlur):
            self._attention.focus(isinstance(event, events.AppFocus))
        elif isinstance(event, events.Key | events.Paste):
            self._attention.key()
        if isinstance(event, _INPUT) and not event.is_forwarded and self._ends_following(event):
            return
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self._keys.put(event)
        else:
            await super().on_event(event)

    async def _hand_on(self, event: events.Event) -> None:
        """Give a key to what has the focus, as what it means to the person."""
        screen = self.screen
        if isinstance(event, events.Key) and isinstance(screen, ConversationScreen):
            key = screen.keymap.translate(event.key, screen.mode)
            if key is None:
                screen.hint(screen.keymap.explain(event.key, screen.mode))
                return
            if key != event.key:
                event = events.Key(key, None)
        await super().on_event(event)

    def _ends_following(self, event: events.Event) -> bool:
        """Follow nobody any more; whether that is all that the person wanted by it."""
        first = self.screen_stack[0]
        has_stopped = isinstance(first, ConversationScreen) and first.following.stop()
        return has_stopped and isinstance(event, events.Key) and event.key == "escape"

    def on_mount(self) -> None:
        self.call_after_refresh(self._first_frame_drawn)

    def _first_frame_drawn(self) -> None:
        """Whatever costs time and is not the first frame."""
        self.session.start(self._memory.anchored_block(self._options.context or ""))
        if not self.is_headless:
            for number in (signal.SIGHUP, signal.SIGTERM):
                self._listen_to(number)
            gc.freeze()  # for the rest of the process, which is this app's
        gc.enable()
        self._tell_problems()
        self.session.find_left_behind()
        if (left := self.session.status.refused) is not None:
            self.document_screen.hint(rejected_location(left), weighty=True)

    def _tell_problems(self) -> None:
        """Tell what is wrong in the person's files: in one hint, as each is shown for long."""
        told = [str(problem) for problem in self._problems]
        if len(told) > 1:
            for one in told:
                self._hints.add(one)
            files = join_names(dict.fromkeys(problem.path.name for problem in self._problems))
            told = [f"{len(told)} mistakes in {files}: Show past hints, in the palette, lists them"]
        for one in told:
            self.document_screen.hint(one, weighty=True)

    def _new_session(self, options: AppOptions) -> Session:
        session = Session(options)
        session.replica.document_replaced.listen(self._document_replaced)
        session.changed.listen(self._standing_changed)
        return session

    def _standing_changed(self) -> None:
        """The context that was open last may be gone."""
        standing = self.session.status
        if self.session.start_failure is not None:
            if not self._leaving:
                self._leaving = True
                self._start_work(self.action_quit, name="no kernel")
        elif standing.connection is ConnectionStatus.LIVE:
            self._returning = self._is_context_named = False
            self._leaving = self._leaving and standing.is_silent
        elif standing.connection is ConnectionStatus.REFUSED and self._returning:
            self._returning = False
            self._open_context(DEFAULT_CONTEXT)
        elif self._is_context_named and self.session.replica.rejection_code == CloseCode.NOT_FOUND:
            self._is_context_named = False
            self._start_work(self._exit_without_context, name="no such context")

    async def _exit_without_context(self) -> None:
        """Leave with the names of the contexts that there are."""
        message = f"There is no context {quote(self._options.context or '')}."
        with suppress(AntiphonError):
            async with self._options.connect() as calls:
                listed = await calls.call("context.list", {})
            labels = join_names([str(one["label"]) for one in listed["contexts"]])
            message += f" There are: {labels}."
        await self.session.close()
        self.exit(return_code=1, message=sanitize(f"antiphon: {message}"))

    def _private_file(self) -> PrivateDraftFile | None:
        """Return the file of the private draft; None in a demo, whose kernel is gone with it."""
        if place_name(self._options) == DEMO:
            return None
        return PrivateDraftFile(state_folder(), kernel_name(self._options))

    def _open_context(self, context: str, block: str | None = None, query: str = "") -> None:
        work: WorkType[None] = partial(self._show_context, context, block, query, self._keys.hold())
        self.run_worker(work, name="another context", exclusive=True)

    async def _show_context(
        self, context: str, block: str | None, query: str, release_keys: Callable[[], None]
    ) -> None:
        """Everything that was written in the one before is on the kernel's disk first."""
        before = self.session
        if before.is_live:
            with suppress(AntiphonError):  # leaving it writes down what was refused
                await before.replica.saved()
            await self.document_screen.contexts.refresh()
        async with self._replacing:  # else the message goes on in the other context
            await self._switch_session(context, block, query)
        release_keys()

    async def _switch_session(self, context: str, block: str | None, query: str) -> None:
        before = self.session
        self._label = self.document_screen.contexts.label_of(context)
        self._options = replace(self._options, context=context)
        self.session, draft = self._new_session(self._options), self._draft
        try:
            await self._show_document()
            if block is not None:
                self.document_screen.view.arrive_at(block, query)
            self.session.start(block or self._memory.anchored_block(context))
        finally:  # also for a person who wants to be in a third context meanwhile
            self._start_work(partial(self._leave, before, draft), group="sessions before")

    async def _leave(self, session: Session, draft: DraftSync) -> None:
        """Close the session of a context that is not shown any more."""
        try:
            kept = await close_session(session, draft)
        except AntiphonError as error:
            self.document_screen.hint(error.message, weighty=True)
            return
        if kept is not None:
            self.document_screen.hint(not_confirmed(kept), weighty=True)

    @on(ConversationScreen.Happened)
    def _happened(self, message: ConversationScreen.Happened) -> None:
        """Call the person back who looks elsewhere."""
        call = self._attention.call(message.text) if self.settings.notifications else ""
        if call and self._driver is not None:
            self._driver.write(call)

    @on(ReportsFailedTasks.TaskFailed)
    def _task_failed(self, message: ReportsFailedTasks.TaskFailed) -> None:
        self.document_screen.hint(f"Something went wrong: {message.error!r}")

    def watch_title(self, title: str) -> None:
        """Name the terminal's window."""
        if isinstance(self._driver, TerminalDriver) and self.settings.title:
            self._driver.show_title(title)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return css_variables(self.current_theme)

    def on_background_reported(self, message: BackgroundReported) -> None:
        """Take the light theme on a terminal with a light background, if none was chosen."""
        if self._asks_terminal and message.colour.brightness > 0.5 and self.theme == DEFAULT_THEME:
            self.theme = LIGHT_THEME
        self._asks_terminal = False

    def on_paste_refused(self, message: PasteRefused) -> None:
        self.document_screen.hint(
            f"Nothing was pasted: {message.characters:,} characters are more than the"
            f" {LONGEST_PASTE:,} that are taken at once."
        )

    def on_terminal_lost(self, message: TerminalLost) -> None:
        self._end_by(signal.SIGHUP)

    def on_input_paused(self, message: InputPaused) -> None:
        """Let the terminal be read on when the keys so far are handled."""
        self._start_work(partial(self._read_on, message.resume), name="input")

    async def _read_on(self, resume: Callable[[], None]) -> None:
        await self._keys.handled()
        resume()

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(LaidOutPalette(id="--command-palette"))

    def on_command_palette_option_highlighted(
        self, message: CommandPalette.OptionHighlighted
    ) -> None:
        """Show the theme that the palette is at, for as long as it is."""
        option = message.highlighted_event.option
        name = shown_theme(option.hit.text or "") if isinstance(option, Command) else None
        if name is not None:
            self._theme_before = self._theme_before or self.theme
            self.theme = name
        else:
            self._end_preview()

    def on_command_palette_closed(self, message: CommandPalette.Closed) -> None:
        if not message.option_selected:
            self._end_preview()

    def _end_preview(self) -> None:
        before, self._theme_before = self._theme_before, None
        if before is not None:
            self.theme = before

    @on(ConversationFrame.SettingChosen)
    def _setting_chosen(self, message: ConversationFrame.SettingChosen) -> None:
        """Keep a choice for later runs; a theme is shown from now on."""
        name, value = message.name, message.value
        if name == "theme":
            self._theme_before, self._asks_terminal = None, False
            self.theme = str(value)
        try:
            self.settings = self._settings_store.remember(self.settings, name, value)
        except OSError as error:
            self._notify_person(f"Your choice cannot be remembered: {error}")

    def _chosen_theme(self) -> str:
        if "NO_COLOR" in os.environ:
            return "monochrome"
        name = self.settings.theme
        if name is None or name in self.available_themes:
            return name or DEFAULT_THEME
        known = ", ".join(sorted(self.available_themes.keys() - BUILTIN_THEMES.keys()))
        reason = f"there is no theme {quote(name)}; known: {known}"
        self._problems.append(FileProblem(config_folder() / SETTINGS_FILE, None, reason))
        return DEFAULT_THEME

    def _notify_person(self, text: str) -> None:
        self.call_after_refresh(lambda: self.document_screen.hint(text))

    def _start_work(self, work: WorkType[None], name: str = "", group: str = "default") -> None:
        """Do this beside everything else; of a function Python does not warn if it is dropped."""
        self.run_worker(work, name=name, group=group)

    def _document_replaced(self) -> None:
        """Keys wait from this moment on: the editors that there are write into the old document."""
        self._keys.pause()
        self._replacements += 1
        # Not in the group of `_open_context`, which would cancel it: keys would wait forever.
        self._start_work(self._replace_document, name="the document anew", group="documents")

    async def _replace_document(self) -> None:
        """Show the new document at the person's place; one after the other, if there are more."""
        try:
            async with self._replacing:
                await self._go_on_in_new_document()
        finally:
            self._replacements -= 1
            if not self._replacements:
                self._resuming = None
            self._keys.resume()

    async def _go_on_in_new_document(self) -> None:
        """Show the new document, with what was written into the one before too late."""
        before = self.document_screen
        if before.source.document is self.session.document:
            return  # it is shown already, or that of another context is

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
            self._resuming = before.state()
        before.view.keep()
        await self._show_document(before)
        drawn = asyncio.Event()
        self.document_screen.call_after_refresh(drawn.set)
        await drawn.wait()
        self.document_screen.resume(self._resuming)
        focused = asyncio.Event()
        self.call_later(focused.set)  # behind the focus, which Textual sets later, too
        await focused.wait()
        if not is_late:  # what was written already is brought to the kernel, come what may
            await wait_for_identity(self.session)

    async def _show_document(self, same_context: ConversationScreen | None = None) -> None:
        """Show the session's document; the message of a screen of the `same_context` goes on."""
        while same_context is None and len(self.screen_stack) > 1:
            await self.screen.dismiss(None)  # so that whoever has asked there goes on
        if same_context is not None:
            self._draft = self._new_draft(self.session.document)
            self._draft.succeed(same_context.composer.draft)
        else:
            self._draft = self._new_draft(self.session.document, private=self._private_file())
        before, mode_before = self.document_screen, self.current_mode
        mode = f"document-{next(self._mode_numbers)}"
        self.add_mode(mode, self.get_default_screen)
        mounted = self.switch_mode(mode)
        move_covers(self, mode_before)
        await mounted
        before.retire()
        removal = partial(self._remove_screen, mode_before, before, same_context is not None)
        self._start_work(removal, group="screens before")
        refused = self.session.status.refused
        if refused is not None:
            self.document_screen.hint(rejected_location(refused), weighty=True)

    async def _remove_screen(
        self, mode: str, screen: ConversationScreen, is_replaced: bool
    ) -> None:
        """Take away a screen that is not shown any more, when all is done that was begun there.

        Args:
            is_replaced: whether its session goes on, with another document.
        """
        for work in [one for one in self.workers if screen in one.node.ancestors_with_self]:
            with suppress(WorkerError):  # which the screen has told of
                await work.wait()
        if not get_current_worker().is_cancelled:  # Textual takes that for an end of the other's
            # Cancelled half-way, it would cancel the screen, for which Textual waits in its end.
            await asyncio.shield(self.remove_mode(mode))
            forget_first_screen(self)
            if is_replaced:
                screen.source.document.close()  # else the CRDT keeps it in memory

    def exit(
        self, result: None = None, return_code: int = 0, message: RenderableType | None = None
    ) -> None:
        """End the app; no screen comes, goes or is written on while Textual ends them all."""
        self.workers.cancel_all()
        super().exit(result, return_code, message)

    async def action_quit(self) -> None:
        """Leave, with everything that was typed on the kernel's disk."""
        standing = self.session.status
        answers = standing.connection is ConnectionStatus.LIVE and not standing.is_silent
        unsaved = standing.unsaved + bool(self._draft.unheard)
        if unsaved and not answers and not self._leaving:
            self._leaving = True
            self.document_screen.hint(
                f"{count_of(unsaved, 'change')} not on the kernel: <key:quit> again leaves and"
                " keeps what was written in a file."
            )
            return
        await self.document_screen.contexts.refresh()
        try:
            kept = await close_session(self.session, self._draft)
        except AntiphonError as error:
            self.exit(message=error.message)
            return
        self.exit(message=None if kept is None else not_confirmed(kept))

    async def _exit_on_signal(self, number: signal.Signals) -> None:
        """The terminal is gone, or the system wants an end: leave as the signal does, later."""
        self.document_screen.view.keep()
        unheard = bool(self._draft.unheard)
        closing = asyncio.ensure_future(close_session(self.session, self._draft))
        # What was typed is written down before the connection is closed, which may take longer.
        await asyncio.wait({closing}, timeout=END_SECONDS)
        refused = self.session.status.refused
        file = None if refused is None else refused.file
        with suppress(AntiphonError):  # there is nobody left to be told
            if closing.done():
                file = closing.result() or file
            if file is not None and (
                unheard or refused is not self.document_screen.people.looked_at
            ):
                mark_untold(file)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _listen_to(self, number: signal.Signals) -> None:
        asyncio.get_running_loop().add_signal_handler(number, self._end_by, number)

    def _end_by(self, number: signal.Signals) -> None:
        self._ending = asyncio.create_task(self._exit_on_signal(number), name=number.name)


async def close_session(session: Session, draft: DraftSync) -> Path | None:
    """Let go of the kernel; return the file with what it has not confirmed, if there is any.

    Raises:
        AntiphonError: `storage_failed` if that cannot be written.
    """
    try:
        kept = session.write_down(draft.unheard) if draft.unheard else None
    finally:
        await session.close()
    refused = session.replica.rejected_edits
    return kept if refused is None else refused.file


async def wait_for_identity(session: Session) -> None:
    """Wait until the kernel has said what the person may do now, if it does so soon.

    Else somebody who may not write any more, and types on, would be refused again and again.
    """
    heard = asyncio.Event()

    def look() -> None:
        if session.is_live and session.me is not None:
            heard.set()

    stops = (session.changed.listen(look), session.replica.presence_changed.listen(look))
    try:
        look()
        with suppress(TimeoutError):
            async with asyncio.timeout(KNOWN_SECONDS):
                await heard.wait()
    finally:
        for stop in stops:
            stop()


def register_themes(app: App[None]) -> tuple[FileProblem, ...]:
    """Make the themes of the package and of the person known; return what is wrong in theirs."""
    loaded = load_themes(bundled_themes_folder(), config_folder() / "themes")
    for theme in loaded.themes.values():
        app.register_theme(theme)
    return loaded.failures


def not_confirmed(file: Path) -> str:
    """Say where the text is that the kernel refused, or may not have saved."""
    return f"The kernel has not confirmed what is in {under_home(file)}"


def place_name(options: AppOptions) -> str:
    """Return the kernel's name in the header: its project, `demo`, or its host."""
    if options.address is not None:
        return options.address.http.rpartition("/")[2]
    if options.demo or options.data.name.startswith("antiphon-demo-"):
        return DEMO
    return options.data.parent.name if options.data.name == DATA_FOLDER else options.data.name


def open_app(options: AppOptions) -> None:
    """Run the app on this terminal until the person leaves it.

    Raises:
        AntiphonError: no_kernel, if the kernel does not come up that was started for it.
        SystemExit: with a code that is not 0 if the app has failed, which has been printed.
    """
    app = AntiphonApp(options)
    app.run()
    if app.session.start_failure is not None:
        raise app.session.start_failure
    if app.return_code:
        sys.exit(app.return_code)
