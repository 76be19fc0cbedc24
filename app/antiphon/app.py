"""The app: its beginning and end, keys, themes and choices, and the terminal."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from rich.console import Console, RenderableType
from textual import events, on
from textual.app import App
from textual.command import CommandPalette
from textual.filter import LineFilter
from textual.theme import BUILTIN_THEMES
from textual.worker import WorkType

from antiphon.attention import PROGRAM, Attention
from antiphon.input_queue import InputQueue
from antiphon.keymap import KeyMap
from antiphon.locations import config_folder, state_folder
from antiphon.message_history import MessageHistory
from antiphon.options import DEMO, AppOptions, kernel_name, place_name
from antiphon.palette import PaletteCommands
from antiphon.render.cell_theme import css_variables
from antiphon.render.links import WithoutLinks
from antiphon.screen_filter import NeutralText
from antiphon.screens.action_scope import ActionScope, ConversationHost
from antiphon.screens.background_tasks import ReportsFailedTasks, wait_until
from antiphon.screens.conversation_controllers import ConversationControllers
from antiphon.screens.conversation_frame import ConversationFrame
from antiphon.screens.conversation_screen import ConversationScreen, page_under
from antiphon.screens.layout import DocumentLayout
from antiphon.screens.modals import rejected_location
from antiphon.screens.view_state import ViewStateStore
from antiphon.session import ConnectionStatus, Session
from antiphon.settings import SETTINGS_FILE, FileProblem, SettingsStore
from antiphon.shown_context import ShownContext, not_confirmed
from antiphon.textual_patches.driver import (
    LONGEST_PASTE,
    BackgroundReported,
    InputPaused,
    PasteRefused,
    TerminalDriver,
    TerminalLost,
    is_linux_console,
)
from antiphon.textual_patches.screens import LaidOutPalette, hand_on
from antiphon.themes import DEFAULT_THEME, LIGHT_THEME, bundled_themes_folder, load_themes
from antiphon.widgets.composer import DraftSync, random_seq
from antiphon.widgets.status import HintLog
from antiphon_kernel.client.rejected_edits import mark_untold
from antiphon_kernel.types.clock import Clock, SystemClock
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.quoting import count_of, join_names, quote

END_SECONDS = 1.5
"""How long what is to be sent, or to be written down, may take when a signal ends the app."""

LEADS: Final = {"@": "files", "#": "search_files"}
"""Actions by signs that are typed first in the palette."""

LEAD_SECONDS: Final = 2.0
"""How long keys wait at most for such an action to ask for something."""

_WHEEL = events.MouseScrollDown | events.MouseScrollUp

_INPUT = events.Key | events.Paste | events.MouseDown | _WHEEL
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
        loaded = load_themes(bundled_themes_folder(), config_folder() / "themes")
        for one in loaded.themes.values():
            self.register_theme(one)
        self._problems = [*self._settings_store.problems, *loaded.failures]
        self.theme = theme or self._chosen_theme()
        self._asks_terminal = theme is None and self.settings.theme is None
        """The theme may still become one that fits the terminal."""
        is_kept = place_name(options) != DEMO and options.replay is None
        folder = state_folder() if is_kept else None
        self._memory = ViewStateStore(folder, options, self._notify_person)
        self._clock = clock
        self._hints = HintLog()
        self._attention = Attention()
        self._keys = InputQueue(self, self._hand_on)
        new_draft = partial(DraftSync, clock=clock, new_seq=new_seq, notify=self._notify_person)
        self.context = ShownContext(
            self, options, self._memory, self._keys, new_draft, self._new_screen
        )
        self.add_mode(self.DEFAULT_MODE, self.get_default_screen)  # else it is never removed
        self._place = place or place_name(options)

    def get_default_screen(self) -> ConversationScreen:
        return self.context.new_screen()

    def _new_screen(self, page: ShownContext) -> ConversationScreen:
        keymap = KeyMap(self.settings.keys)
        clock = page.session.player or self._clock
        make: type[ConversationFrame] = ConversationFrame
        if page.session.player is not None:
            from antiphon.screens.replay_frame import ReplayFrame

            make = ReplayFrame
        frame = make(
            page.session,
            page.draft,
            self._hints,
            keymap,
            place=self._place,
            settings=self.settings,
            clock=clock,
            is_file=page.file is not None,
        )

        def control(host: ConversationHost) -> ConversationControllers:
            files = self.context.files
            scope = ActionScope(
                *(host, page.session, frame, frame.area.cells, files, page.file),
                *(keymap, self._memory, clock or SystemClock()),
            )
            history = MessageHistory(state_folder(), kernel_name(self._options))
            return ConversationControllers(scope, page.name, self._keys, self._hints, history)

        return ConversationScreen(frame, control)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return the filter for each row of each widget: Textual's own, then ours, in one."""
        before = tuple(super().get_line_filters())
        if is_linux_console():
            before = (*before, self._without_links)
        if before != self._neutral_text.before:
            self._neutral_text = NeutralText(before)
        return (self._neutral_text,)

    @property
    def session(self) -> Session:
        """The session of the page that keys go to."""
        return self.context.front.session

    @property
    def document_screen(self) -> ConversationScreen:
        return self.context.front.screen

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.AppFocus | events.AppBlur):
            self._attention.focus(isinstance(event, events.AppFocus))
        elif isinstance(event, events.Key | events.Paste):
            self._attention.key()
        if isinstance(event, _INPUT) and not event.is_forwarded:
            # What is followed in the conversation may have brought the page of a file.
            has_stopped = True in [one.screen.following.stop() for one in self.context.pages]
            if has_stopped and isinstance(event, events.Key) and event.key == "escape":
                return  # the person wanted nothing else by it
        if isinstance(event, events.MouseEvent) and not event.is_forwarded:
            other = page_under(self, event.x, event.y)
            if other is not None and isinstance(event, _WHEEL):
                hand_on(other, event)
                return
            if other is not None and isinstance(event, events.MouseDown):
                self.context.come()
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

    def on_mount(self) -> None:
        self.call_after_refresh(self._first_frame_drawn)

    def _first_frame_drawn(self) -> None:
        """Whatever costs time and is not the first frame."""
        self.session.start(self._memory.place(self.context.options.context).block)
        if not self.is_headless:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGHUP, signal.SIGTERM):
                loop.add_signal_handler(number, self._end_by, number)
            gc.freeze()  # for the rest of the process, which is this app's
        gc.enable()
        # What is wrong in the person's files is told in one hint, as each is shown for long.
        told = [str(problem) for problem in self._problems]
        if len(told) > 1:
            for one in told:
                self._hints.add(one)
            files = join_names(dict.fromkeys(problem.path.name for problem in self._problems))
            told = [f"{len(told)} mistakes in {files}: Show past hints, in the palette, lists them"]
        for one in told:
            self.document_screen.hint(one, weighty=True)
        self.session.find_left_behind()
        if (left := self.session.status.refused) is not None:
            self.document_screen.hint(rejected_location(left), weighty=True)

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
        work: WorkType[None] = partial(self._read_on, message.resume)
        self.run_worker(work, name="input")

    async def _read_on(self, resume: Callable[[], None]) -> None:
        await self._keys.handled()
        resume()

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            leads = {sign: partial(self._lead, action) for sign, action in LEADS.items()}
            self.push_screen(LaidOutPalette(leads, id="--command-palette"))

    def _lead(self, action: str) -> None:
        """Do an action that asks for something; keys wait until it does."""
        work: WorkType[None] = partial(self._ask_by, action, self._keys.hold())
        self.run_worker(work, name=action)

    async def _ask_by(self, action: str, release_keys: Callable[[], None]) -> None:
        page = self.document_screen
        page.call_action(action)
        await wait_until(lambda: self.screen is not page and self.focused, LEAD_SECONDS)
        release_keys()

    @on(DocumentLayout.SettingChosen)
    def _setting_chosen(self, message: DocumentLayout.SettingChosen) -> None:
        """Keep a choice for later runs; a theme is shown from now on."""
        name, value = message.name, message.value
        if name == "theme":
            self._asks_terminal = False
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

    def exit(
        self, result: None = None, return_code: int = 0, message: RenderableType | None = None
    ) -> None:
        """End the app; no screen comes, goes or is written on while Textual ends them all."""
        self.workers.cancel_all()
        super().exit(result, return_code, message)

    async def action_quit(self) -> None:
        """Leave, with everything that was typed on the kernel's disk."""
        pages, standing = self.context.pages, self.context.session.status
        answers = standing.connection is ConnectionStatus.LIVE and not standing.is_silent
        unsaved = sum(one.session.status.unsaved + bool(one.draft.unheard) for one in pages)
        if unsaved and not answers and not self.context.is_leaving:
            self.context.is_leaving = True
            self.document_screen.hint(
                f"{count_of(unsaved, 'change')} not on the kernel: <key:quit> again leaves and"
                " keeps what was written in a file."
            )
            return
        await self.context.screen.contexts.refresh()
        told: list[str] = []
        for one in pages:
            try:
                kept = await one.session.leave(one.draft.unheard)
            except AntiphonError as error:
                told.append(error.message)
            else:
                told += [] if kept is None else [not_confirmed(kept)]
        self.exit(message="\n".join(told) or None)

    async def _exit_on_signal(self, number: signal.Signals) -> None:
        """The terminal is gone, or the system wants an end: leave as the signal does, later."""
        await asyncio.gather(*map(self._leave_at_once, self.context.pages))
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    async def _leave_at_once(self, page: ShownContext) -> None:
        page.screen.view.keep()
        unheard = page.draft.unheard
        closing = asyncio.ensure_future(page.session.leave(unheard))
        # What was typed is written down before the connection is closed, which may take longer.
        await asyncio.wait({closing}, timeout=END_SECONDS)
        refused = page.session.status.refused
        file = None if refused is None else refused.file
        with suppress(AntiphonError):  # there is nobody left to be told
            if closing.done():
                file = closing.result() or file
            if file is not None and (unheard or refused is not page.screen.people.looked_at):
                mark_untold(file)

    def _end_by(self, number: signal.Signals) -> None:
        self._ending = asyncio.create_task(self._exit_on_signal(number), name=number.name)


def open_app(options: AppOptions, place: str | None = None) -> None:
    """Run the app on this terminal until the person leaves it; `place` is what its header says.

    Raises:
        AntiphonError: no_kernel, if the kernel does not come up that was started for it.
        SystemExit: with a code that is not 0 if the app has failed, which has been printed.
    """
    app = AntiphonApp(options, place=place)
    app.run()
    if app.context.session.start_failure is not None:
        raise app.context.session.start_failure
    if app.return_code:
        sys.exit(app.return_code)
