"""The one screen in which people live: a conversation and the lines around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from textual import events, on
from textual.app import App, ComposeResult
from textual.message import Message
from textual.widget import Widget

from antiphon.actions import ActionContext, Mode, shown_key
from antiphon.keymap import ACTION_NAMED, KeyMap
from antiphon.local_user import LocalUser
from antiphon.screens.action_scope import ConversationHost
from antiphon.screens.conversation_controllers import ConversationControllers
from antiphon.screens.conversation_frame import ConversationFrame
from antiphon.screens.known_models import KnownModels
from antiphon.screens.layout import BESIDE_FROM
from antiphon.screens.visitors import WATCHES
from antiphon.textual_patches.screens import is_bound
from antiphon.widgets.block_list import CellModel, DocumentView
from antiphon.widgets.composer import Composer
from antiphon.widgets.editor import CellEditor
from antiphon.widgets.first_page import FirstPageContent
from antiphon.widgets.sidebar import ContextName
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.text.transform import shift_through
from antiphon_kernel.types.quoting import join_names

FIRST_PAGE_CONTEXTS: Final = 3
"""Other contexts that the page of an empty one names."""


class ConversationScreen(ConversationHost):
    """Composes the widgets and their controllers, and passes messages between them."""

    AUTO_FOCUS = "ComposerEditor"
    DEFAULT_CSS = """
    ConversationScreen.-beside { background: transparent; }
    """

    @dataclass
    class Happened(Message):
        """Something that a person who looks elsewhere is told of."""

        text: str

    def __init__(
        self,
        frame: ConversationFrame,
        control: Callable[[ConversationHost], ConversationControllers],
    ) -> None:
        """`control` makes the controllers that work with the frame for this screen."""
        super().__init__()
        self._retired = self._is_behind = False
        parts = self.controllers = control(self)
        frame.parts = frame.area.parts = frame.composer.parts = parts
        self.keymap = parts.scope.keymap
        self.user = parts.source.user
        self.source = parts.source
        self.cells = parts.cells
        self.area = frame.area
        self.composer = frame.composer
        self.frame = frame
        self.models = parts.models
        self.contexts = parts.contexts
        self.people = parts.people
        self.following = parts.following
        self.view = parts.view

    def compose(self) -> ComposeResult:
        yield self.frame

    def on_mount(self) -> None:
        self.composer.editor.completer = self.controllers.commands.complete
        if self.source.is_file:
            self.cells.focus()
        for name in ("focused_cell", "following", "unread_lines"):
            self.watch(self.cells, name, self._view_changed, init=False)
        self.controllers.start()

    def on_unmount(self) -> None:
        self.retire()

    def retire(self) -> None:
        """Follow nothing any more: another screen shows the context from now on."""
        if not self._retired:
            self._retired = True
            for group in WATCHES:
                self.workers.cancel_group(self, group)
            self.controllers.close()

    # One screen after the other

    def leave_place(self) -> Callable[[ConversationScreen], None]:
        """Return what brings another screen of the context to where the person is on this one."""
        parts, mode, editor = self.controllers, self.mode, self.area.editor
        find, message = parts.find, self.composer.editor
        block, cursor, text = None, None, ""
        if mode is not Mode.WRITE:
            block = parts.scope.block
        if mode is Mode.EDIT and editor is not None:
            cursor, text = editor.cursor_offset, editor.text
        folds, arranger = dict(self.source.folds), replace(parts.arranger.state)
        query = self.frame.find.input.value if find.is_open and not editor else None
        hit, finds_from_message = find.place, find.focused_before is message
        message_cursor, followed = message.cursor_offset, self.following.followed
        goes_first = self.cells.goes_first and block == self.cells.order.first()
        revised, waiting = parts.submitter.revised, parts.submitter.waiting
        parts.submitter.waiting = None

        def resume(there: ConversationScreen) -> None:
            parts, message, cells = there.controllers, there.composer.editor, there.cells
            there.source.take_folds(folds)
            there.view.restore()
            at = min(message_cursor, len(message.text))
            message.select(at, at)
            if query is not None:
                parts.find.focused_before = message if finds_from_message else cells
                parts.find.go_on(query, hit)
            if block is not None and block in there.source.document:
                cells.focus_cell(block, reveal=False)
                if mode is Mode.EDIT:
                    place = cursor
                    if place is not None:
                        changes = plan_difference(text, there.source.document.text(block))
                        place = shift_through(place, changes, stick="left")
                    there.area.edit(block, place, to_read=True)
                elif mode is Mode.NAVIGATE:
                    cells.focus()
                    if goes_first:
                        cells.first_cell()
            elif mode is Mode.WRITE:
                message.focus()
            parts.arranger.resume(arranger)
            if followed is not None:
                there.following.follow(followed)
            there.following.presence_changed()
            parts.submitter.revised, parts.submitter.waiting = revised, waiting
            parts.submit_pending()
            if arranger.brings_back:
                there.call_action("bring_back")

        return resume

    @property
    def shown_now(self) -> ConversationScreen:
        """This screen, or the one that has taken its place below a page that was opened here."""
        if not self._retired:
            return self
        pages = shown_pages(self.app)
        same = [one for one in pages if one.source.is_file == self.source.is_file]
        return (same or pages or [self])[-1]

    # What can be done now, and what is said

    @property
    def mode(self) -> Mode:
        return self.controllers.scope.mode

    @property
    def situation(self) -> ActionContext:
        return self.controllers.situation()

    def hint(self, text: str, *, weighty: bool = False) -> None:
        """Say one sentence above the composer; no hint takes the place of a weighty one."""
        if (shown := self.shown_now) is not self:
            shown.hint(text, weighty=weighty)
        else:
            self.frame.notice.show_hint(self.keymap.name_keys(text), weighty=weighty)

    def tell(self, text: str) -> None:
        self.post_message(self.Happened(f"{text} · {self.contexts.label}"))

    @on(events.TextSelected)
    def update(self) -> None:
        """Show who is here, what they do, what can be done now, and what could be tried next."""
        self.people.show()
        self.controllers.language.follow()
        situation = self.situation
        self.frame.footer.situation = situation
        self.frame.notice.mode = situation.mode_word
        self.composer.editor.says = placeholder(
            self.keymap,
            self.user,
            self.mode,
            is_private=self.composer.draft.is_private,
            finds=self.controllers.find.is_open,
        )
        self._suggest()
        is_first = self.view.is_restored and not self.composer.draft.text
        is_first = is_first and not self.controllers.tour.is_shown and is_empty(self.source)
        is_first = is_first and not self.source.is_file
        self.frame.first_page.content = (
            first_page_content(self.keymap, self.models, self.user, self.contexts.others)
            if is_first
            else None
        )

    def _suggest(self) -> None:
        notice, name, tour = self.frame.notice, self.following.name, self.controllers.tour
        if name is not None:
            notice.suggest(f"{name} · any key stops", label="FOLLOWING")
        elif legend := self.controllers.blame.legend():
            notice.suggest(legend, label="BLAME")
        else:
            attempt = tour.tour.hint_text if tour.is_shown else None
            notice.suggest(self.keymap.name_keys(attempt or "") or None)

    # Focus and keys

    def call_action(self, name: str) -> None:
        owner = self.query_one(ACTION_NAMED[name].owner)
        getattr(owner, f"action_{name}")()

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
        if focused is not None and self._is_behind:
            focused.post_message(events.Blur())
        if focused is self.composer.editor:
            self.controllers.scope.mode = Mode.WRITE
        elif isinstance(focused, CellEditor):
            self.controllers.scope.mode = Mode.EDIT
            self.controllers.tour.tour.editing()
        elif focused is self.frame.sidebar:
            sidebar = self.controllers.sidebar
            sidebar.focused_before = before if before is not None else sidebar.focused_before
            self.controllers.scope.mode = Mode.CONTEXTS
            sidebar.list_contexts()
        elif focused is self.frame.find.input:
            self.controllers.scope.mode = Mode.FIND
        else:
            self.controllers.scope.mode = Mode.NAVIGATE
        if self.mode is not Mode.NAVIGATE:
            self.controllers.arranger.state.moving = None
        self.following.publish()
        self.controllers.questions.show_keys()
        self.update()

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
        elif not is_bound(self, event.key):
            self.hint(
                f"{shown_key(event.key)} does nothing here: <key:help> lists the keys that do."
            )

    @on(DocumentView.EditRefused)
    @on(CellEditor.WriteRefused)
    def _refused(self, message: DocumentView.EditRefused | CellEditor.WriteRefused) -> None:
        self.hint(message.reason)

    @on(Composer.Changed)
    def _message_changed(self) -> None:
        self.controllers.submitter.draft_changed()
        self.following.publish()
        self.update()

    def on_resize(self) -> None:
        fit_pages(self.app)

    def fit(self, *, is_beside: bool, is_behind: bool) -> None:
        """Lay out for the terminal's size, beside the other page or alone."""
        self.set_class(is_beside, "-beside")
        self.frame.set_class(is_beside and is_behind, "-behind")
        self.frame.is_beside = is_beside
        if is_behind != self._is_behind and self.focused is not None:
            # What is behind shows no cursor, but keeps its place.
            self.focused.post_message(events.Blur() if is_behind else events.Focus())
        self._is_behind = is_behind
        if self.frame.fit(self.app.size):
            self.controllers.sidebar.update()
        self.people.is_retired = is_behind
        self.update()

    @on(CellEditor.CursorMoved)
    @on(CellEditor.Refolded)
    def _cursor_moved(self) -> None:
        self.following.publish()
        self.update()

    @on(CellEditor.Edited)
    def _edited(self, message: CellEditor.Edited) -> None:
        self.following.typed()
        self.controllers.undo.edited()
        if message.editor is not self.composer.editor:
            self.controllers.tour.tour.typed(message.inserted)
            self.update()
            self.controllers.file.edited()

    def _view_changed(self) -> None:
        self.controllers.arranger.show_move()
        self.controllers.questions.show_keys()
        if self.mode is Mode.NAVIGATE:
            self.following.publish()
        self.update()

    def follow(self, principal: str) -> None:
        self.shown_now.following.follow(principal)

    def open_context(self, context: str) -> None:
        """Show another context."""
        self.controllers.sidebar.open_context(context)

    def choose_theme(self, name: str) -> None:
        """Show a theme, now and in later runs."""
        self.frame.choose("theme", name)

    def choose_model(self, name: str) -> None:
        """Let a model answer the messages in this context that name none."""
        self.run_in_background(partial(self.models.choose, name))

    def set_agent(self, params: Mapping[str, Any]) -> None:
        """Let an agent work in another mode, or with another value of an option."""
        self.run_in_background(partial(self.models.set_agent, params))


def shown_pages(app: App[Any]) -> list[ConversationScreen]:
    """Return the conversation and the file that are open, the one that keys go to last."""
    return [one for one in app.screen_stack if isinstance(one, ConversationScreen)]


def fit_pages(app: App[Any]) -> None:
    """Lay out the open pages: side by side where there is room, else one over the other."""
    pages = [one for one in shown_pages(app) if one.is_mounted]
    is_beside = len(pages) > 1 and app.size.width >= BESIDE_FROM
    for one in pages:
        one.fit(is_beside=is_beside, is_behind=one is not pages[-1])


def page_under(app: App[Any], x: int, y: int) -> ConversationScreen | None:
    """Return the page at a place of the terminal, if keys go to the one beside it."""
    pages = shown_pages(app)
    if len(pages) < 2 or app.screen is not pages[-1] or not pages[-1].frame.is_beside:
        return None
    return None if pages[-1].frame.region.contains(x, y) else pages[0]


def is_empty(source: CellModel) -> bool:
    """Return whether nothing is shown; a message on its way is a draft, and shown."""
    document = source.document
    blocks = document.block_ids()
    return not any(not document.is_draft(one) or source.deliveries.label(one) for one in blocks)


def first_page_content(
    keymap: KeyMap, models: KnownModels, user: LocalUser, contexts: Sequence[ContextName]
) -> FirstPageContent:
    """Return the keys, who answers, and the contexts that were written in last."""
    named, may_write = {"palette": "everything, by name"}, user.refusal is None
    if may_write:
        named = {"send": "sends what you write below"} | named
    shown = [(key, does) for name, does in named.items() if (key := keymap.shown_key(name))]
    if may_write:
        does = "runs a command, as in !ls; / lists commands"
        shown.append(("!", does) if user.works_on_host else ("/", "lists commands"))
    answers = [models.nobody] if models.is_known else []
    agents = [one.name for one in models.agents]
    if not may_write:
        answers = ["Nothing has been written here yet."]
    elif models.here.default is not None:
        default = models.here.default
        others = [name for name in models.here.names if name != default] + agents
        answers = [f"{default} answers."]
        if others:
            answers = [f"{default} answers; @ addresses {join_names(others)}."]
    elif agents:
        answers = [f"@ addresses {join_names(agents)}."]
    latest = sorted(contexts, key=lambda one: one.version, reverse=True)
    return FirstPageContent(
        keys=shown,
        answers=answers,
        contexts=[
            (one.label, f"●{one.unread}" if one.unread else "")
            for one in latest[:FIRST_PAGE_CONTEXTS]
        ],
    )


def placeholder(
    keymap: KeyMap, user: LocalUser, mode: Mode, *, is_private: bool, finds: bool
) -> Sequence[str]:
    """Return what an empty message says in a mode: what it is for, and the way out."""
    key = keymap.shown_key("write")
    if (denial := user.denial) is not None:
        return tuple(map(keymap.name_keys, denial.instead))
    if is_private:
        return "Private: seen by nobody until sent", keymap.name_keys("<key:private> shares")
    match mode:
        case Mode.WRITE:
            what = "Message, or !command" if user.works_on_host else "Message"
            return what, "Esc ends the search" if finds else "Esc to the cells"
        case Mode.EDIT:
            return ("Esc leaves the cell",)
        case Mode.NAVIGATE:
            return (f"{key} to write",) if key else ()
        case _:
            return ("Esc goes back",)
