"""The place at the bottom where messages are written, and the choices for what is being typed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Literal

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip

from antiphon.actions import shown_key
from antiphon.completion import Completion, CompletionChoice
from antiphon.local_user import LocalUser
from antiphon.render.display import displayable_in_a_row
from antiphon.render.view import OWN_NAME
from antiphon.widgets.composer.draft_sync import LOCAL_BLOCK, SHELL_MARK, DraftSync
from antiphon.widgets.editor import FOLDED, CellEditor
from antiphon.widgets.status import StatusSpan, cut_to
from antiphon.widgets.status.line import fit
from antiphon.widgets.themed import ThemedWidget

MOST_ROWS = 8

_DETAIL_COLUMN = 24


class CompletionList(ThemedWidget):
    """A few rows; not there while nothing can be completed."""

    DEFAULT_CSS = """
    CompletionList { layer: above; dock: bottom; width: 100%; height: auto; display: none; }
    CompletionList.-open { display: block; }
    """

    completion: Completion | None = None
    has_moved = False
    """Whether the person has chosen a line; else the first is only the likely one."""
    _at = 0
    margin = 1
    """The column in which it begins."""

    @property
    def is_open(self) -> bool:
        return self.completion is not None

    @property
    def chosen(self) -> CompletionChoice | None:
        """The choice that Tab takes."""
        return None if self.completion is None else self.completion.choices[self._at]

    def show(self, completion: Completion | None) -> None:
        if completion == self.completion:
            return
        self.completion, self._at, self.has_moved = completion, 0, False
        self.set_class(completion is not None, "-open")
        self.refresh(layout=True)

    @property
    def taken_by(self) -> str:
        """The key that takes the choice."""
        is_command = self.completion is not None and self.completion.is_command
        return "enter" if self.has_moved or is_command else "tab"

    def move(self, step: int) -> bool:
        """Choose the next line, around the ends; False if that changes nothing."""
        if self.completion is None:
            return False
        before = self._at, self.taken_by
        self._at = (self._at + step) % len(self.completion.choices)
        self.has_moved = True
        self.refresh()
        return (self._at, self.taken_by) != before

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        count = 0 if self.completion is None else len(self.completion.choices)
        return max(1, min(MOST_ROWS, count, container.height - 1))

    def render_line(self, y: int) -> Strip:
        width, theme = self.size.width, self.cell_theme
        ground = theme.background + theme.panel
        choices = () if self.completion is None else self.completion.choices
        top = max(0, min(self._at - self.size.height // 2, len(choices) - self.size.height))
        if top + y >= len(choices):
            return Strip.blank(width, ground)
        choice = choices[top + y]
        is_chosen = top + y == self._at
        text = displayable_in_a_row(choice.text.rstrip())
        gap = " " * max(2, _DETAIL_COLUMN - cell_len(text))
        mark = "▸ " if is_chosen else "  "
        room = width - self.margin - 1
        left = [
            StatusSpan(mark, theme.focus),
            StatusSpan(cut_to(text, room - 2), theme.focus if is_chosen else theme.text),
            StatusSpan(gap + displayable_in_a_row(choice.detail), theme.dim),
        ]
        more = len(choices) - self.size.height
        is_last = y == self.size.height - 1 and more > 0
        notes = [shown_key(self.taken_by)] if is_chosen else []
        notes += [f"{self._at + 1}/{len(choices)}"] if is_last else []
        right = [StatusSpan(" · ".join(notes), theme.dim)] if notes else []
        return fit(left, right, width, ground, margin=self.margin)


PROMPT: Final = "› "
PRIVATE_PROMPT: Final = "» "
"""Stands before a message that nobody else sees."""
SHELL_PROMPT: Final = "$ "
ADDRESS_PROMPT: Final = "@ "
"""Stands before a message that says who is to answer it."""
ASKING_PROMPT: Final = "? "
"""Stands before a command that Enter does not run before it has asked."""

Completer = Callable[[str, bool], Completion | None]
"""Makes the completion of a line up to the cursor; the other argument is whether it is the
message's first."""


_ROWS_BESIDE: Final = 7
"""Rows of the screen that a message leaves: four of frame and hints, three of the document."""

_FIRST_WORD: Final = re.compile(r"\S+")


class ComposerEditor(CellEditor):
    """A cell editor in which Enter sends, and ↑ leaves it from the first row."""

    STICK: ClassVar[Literal["left", "right"]] = "right"
    """Right: text that comes into one's own message is one's own, as of a restored draft."""

    says: reactive[Sequence[str]] = reactive(())
    """The words of an empty message; only the first part where there is little room."""

    class SendRequested(CellEditor.EditorMessage):
        """Enter."""

    class NavigateRequested(CellEditor.EditorMessage):
        """↑ on the first row of the message."""

    def __init__(self, draft: DraftSync, user: LocalUser, completions: CompletionList) -> None:
        super().__init__(draft.local, LOCAL_BLOCK, user=user)
        self.completer: Completer | None = None
        """Makes the completion of a text before the cursor."""
        self._completions = completions
        self._declined: str | None = None
        """The beginning for which the person has closed the list."""
        self._history: Sequence[str] | None = None
        """Messages that are offered for the whole text."""

    @property
    def ground(self) -> Style:
        return self.cell_theme.background + self.cell_theme.composer

    def fit(self, rows: int) -> None:
        """It is about to be so many rows high."""
        if rows != self._rows_to_fill:
            self._rows_to_fill = rows
            self._changed(by_person=True)

    async def _on_key(self, event: events.Key) -> None:
        if self._complete_by(event.key):
            pass
        elif event.key == "enter" and not self._at_backslash():
            self.post_message(self.SendRequested(self))
        elif event.key in ("enter", "ctrl+j", "shift+enter"):
            self.new_line()
        elif event.key not in ("tab", "shift+tab"):
            return
        event.stop()
        event.prevent_default()

    # Completion

    def _changed(self, *, by_person: bool) -> None:
        super()._changed(by_person=by_person)
        self._offer()

    def _offer(self) -> None:
        found = self._completion()
        if found is None:
            self._declined = None
        elif self._declined is not None and self._declined in found.begun:
            found = None
        self._completions.show(found)

    def offer_history(self, messages: Sequence[str]) -> bool:
        """Offer the earlier messages that contain what is written, or choose the next offered one.

        Returns whether there is one.
        """
        if self._history is not None and self._completions.is_open:
            return self._completions.move(1)
        self._history = messages
        self._offer()
        if not self._completions.is_open:
            self._history = None
        return self._history is not None

    def _completion(self) -> Completion | None:
        if self._history is not None:
            words = self.text.casefold()
            choices = [CompletionChoice(one) for one in self._history if words in one.casefold()]
            return Completion(self.text, tuple(choices), is_command=True) if choices else None
        if self.completer is None or not self.has_focus or not self.selection.is_empty:
            return None
        row, column = self.selection.end
        *folds, before = FOLDED.split(self.document.get_line(row)[:column])
        found = self.completer(before, row == 0 and not folds)
        if found is None or not found.choices:
            return None
        return None if [one.text for one in found.choices] == [found.begun] else found

    def _complete_by(self, key: str) -> bool:
        """Do what a key does in the list of choices; whether it does anything there."""
        shown = self._completions
        if shown.completion is None:
            return False
        if key in ("up", "down"):
            return shown.move(1 if key == "down" else -1)
        if key == "escape":
            self._decline(shown.completion)
        elif key in ("tab", shown.taken_by):
            if shown.chosen is not None and shown.chosen.text == shown.completion.begun:
                # It stands there already.
                self._decline(shown.completion)
                return key == "tab"
            self._take(shown, is_whole=shown.has_moved or key == "enter")
        else:
            return False
        return True

    def _decline(self, completion: Completion) -> None:
        """Close the list, until something else is typed."""
        self._declined = completion.begun if self._history is None else None
        self._history = None
        self._completions.show(None)

    def _take(self, shown: CompletionList, *, is_whole: bool) -> None:
        """Write the choice, or what all choices begin with, over what has been typed of it."""
        completion, chosen = shown.completion, shown.chosen
        if completion is None or chosen is None:
            return
        text = chosen.text
        if self._history is not None:
            self._history = None
            self.replace(text, (0, 0), self.document.end, maintain_selection_offset=False)
            return
        if not is_whole and completion.common != completion.begun:
            text = completion.common
        row, column = self.selection.end
        start = row, column - len(completion.begun)
        self.replace(text, start, (row, column), maintain_selection_offset=False)

    def on_blur(self) -> None:
        self._history = None
        self._completions.show(None)

    def new_line(self) -> None:
        """A line end at the cursor, instead of the backslash before it if there is one."""
        start, end = self.selection
        if self._at_backslash():
            start = (start[0], start[1] - 1)
        self.replace("\n", start, end, maintain_selection_offset=False)

    def _at_backslash(self) -> bool:
        row, column = self.selection.end
        is_plain = self.selection.is_empty and column > 0
        return is_plain and self.document.get_line(row)[column - 1] == "\\"

    def action_cursor_up(self, select: bool = False) -> None:
        if self.cursor_row == 0 and not select:
            self.post_message(self.NavigateRequested(self))
        else:
            super().action_cursor_up(select)

    def render_line(self, y: int) -> Strip:
        if y or self.text:
            return super().render_line(y)
        parts = self.says
        words = cut_to(" · ".join(parts), self.size.width)
        if words.endswith("…"):
            words = cut_to("".join(parts[:1]), self.size.width)
        first, rest = words[:1], words[1:]
        theme = self.cell_theme
        page, dim = self.ground, self.ground + theme.dim
        cursor = page + theme.own_cursor if self.has_focus else dim
        strip = Strip([Segment(first, cursor), Segment(rest, dim)])
        return strip.adjust_cell_length(self.size.width, page)


class PromptMark(ThemedWidget):
    """Sign before the first row of the message, after the author's name where there is room.

    It says what Enter does: `›` sends a message, `»` one that nobody sees yet, `@` one to somebody,
    who is named instead of the author; `$` runs a command and `?` asks before it does.
    """

    DEFAULT_CSS = """
    PromptMark { width: 3; height: 100%; }
    """

    begun: reactive[str] = reactive("")
    """The first word of the message."""
    asks: reactive[bool] = reactive(False)
    """Enter asks before it runs the command."""
    is_private: reactive[bool] = reactive(False)
    """Nobody else sees the message."""
    colour: reactive[int | None] = reactive(None)
    """The colour slot of the person who writes here."""

    def __init__(self, user: LocalUser) -> None:
        super().__init__()
        self._user = user

    def render_line(self, y: int) -> Strip:
        theme, room = self.cell_theme, self.size.width - len(PROMPT)
        ground = theme.background + theme.composer
        if y:
            return Strip.blank(self.size.width, ground)
        author = theme.dim if self.colour is None else theme.author(self.colour)
        name = OWN_NAME if room > len(OWN_NAME) else ""
        style, prompt = theme.mode_write, PRIVATE_PROMPT if self.is_private else PROMPT
        if self.begun.startswith(SHELL_MARK) and self.asks:
            style, prompt = theme.unread, ASKING_PROMPT
        elif self.begun.startswith(SHELL_MARK):
            style, prompt = theme.tool_prompt, SHELL_PROMPT
        elif self.begun.startswith("@") and len(self.begun) > 1:
            prompt = PRIVATE_PROMPT if self.is_private else ADDRESS_PROMPT
            author = theme.mode_write if name else author
            name = cut_to(displayable_in_a_row(self.begun), room - 1) if name else ""
        style = theme.dim if self._user.denial is not None else style
        return Strip(
            [
                Segment(name.ljust(room), ground + author),
                Segment(prompt, ground + style),
            ]
        )


class Composer(Horizontal):
    """The message with its prompt; grows with the text to half the screen's height at most."""

    DEFAULT_CSS = """
    Composer { height: 1; width: 1fr; }
    Composer > ComposerEditor { width: 1fr; height: 100%; }
    """

    class Changed(Message):
        """There is another text in the composer, or others see it."""

    def __init__(self, draft: DraftSync, user: LocalUser | None = None) -> None:
        super().__init__()
        user = user or LocalUser()
        self.draft = draft
        self.completions = CompletionList()
        """Choices for what is typed; stands elsewhere on the screen."""
        self.editor = ComposerEditor(draft, user, self.completions)
        self.mark = PromptMark(user)
        """Stands in the gutter: the text is in line with the text of the cells."""
        self._unwatch = draft.local.watch(lambda change: self._text_changed())

    def compose(self) -> ComposeResult:
        yield self.mark
        yield self.editor

    def on_unmount(self) -> None:
        self._unwatch()

    def show_role(self) -> None:
        """Redraw what depends on whether the person may write, and who sees it."""
        self._show_purpose()
        self.mark.refresh()
        self.editor.refresh()
        self.post_message(self.Changed())

    def write(self, text: str) -> None:
        """Write another message, and go to its end."""
        self.draft.write(text)
        self.editor.move_cursor(self.editor.document.end)
        self.editor.focus()

    @property
    def shows_all(self) -> bool:
        """Return whether the whole message is on the screen, as soon as the next frame is drawn."""
        place = self.screen.find_widget(self.editor)
        is_cut = place.visible_region.height < place.region.height
        return not self._is_long and not is_cut

    @property
    def _is_long(self) -> bool:
        """Return whether the composer cannot show the whole message, or shows labels in it."""
        editor = self.editor
        return bool(editor.document.labels) or editor.row_count > self._most_rows

    @property
    def _most_rows(self) -> int:
        height = self.screen.size.height
        return max(1, min(height // 2, height - _ROWS_BESIDE))

    def _text_changed(self) -> None:
        self.post_message(self.Changed())
        self._show_purpose()
        # The editor follows the same change; its rows are known after it has.
        self.call_later(self._fit)

    @on(events.Resize)
    @on(CellEditor.Refolded)
    def _fit(self) -> None:
        rows = max(1, min(self.editor.row_count, self._most_rows))
        self.editor.fit(rows)
        self._show_purpose()
        self.styles.height = rows

    def _show_purpose(self) -> None:
        draft, mark = self.draft, self.mark
        asks = (self.is_mounted and self._is_long) or not draft.is_typed_here
        mark.is_private, mark.asks = draft.is_private, asks
        first = _FIRST_WORD.match(draft.text)
        mark.begun = first[0] if first else ""
