"""Modal screens over the document: pages of text, and questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import ClassVar, Final, TypeVar

from rich.cells import chop_cells
from rich.segment import Segment
from rich.style import Style
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from antiphon.actions import shown_key
from antiphon.keymap import KeyMap
from antiphon.locations import under_home
from antiphon.render.cell_theme import CellTheme
from antiphon.render.display import sanitize_for_display
from antiphon.screens.background_tasks import ReportsFailedTasks
from antiphon.textual_patches.screens import DismissOnceMixin, is_bound
from antiphon.time_format import format_absolute
from antiphon.widgets.status import HintBar, HintLog, KeyLines, Keys, StatusSpan, fit
from antiphon.widgets.status.line import wrap_words
from antiphon.widgets.themed import ThemedWidget
from antiphon_kernel.client.rejected_edits import Rejection

COMMAND_TITLE: Final = "Run this command?"

KEY_COLUMNS: Final = 22

REASON_ASKED: Final = "Why not? The model reads it."

LONGEST_REASON: Final = 2_000
"""Characters of a reason, as the kernel takes it."""

LONGEST: Final = 100_000
"""Characters of a report that are shown; the file has all of it."""

Rows = Callable[[int, CellTheme], Sequence[Sequence[StatusSpan]]]
"""The lines of a page at a width."""

KEY_ADVICE: Final = (
    "The name is a wish. Ask the person for the fingerprint of their key, by another way than this"
    " one, before you let them in: ssh-keygen -lf ~/.ssh/id_ed25519.pub shows it."
)

Result = TypeVar("Result")

NO_CELL: Final = "There is no cell yet."

PAGE_START: Final = "This is the start of the page."

PAGE_END: Final = "This is the end of the page."

_SIDEWAYS: Final = frozenset({"scroll_left", "scroll_right", "page_left", "page_right"})


class _ModalHint(HintBar):
    """A row that is there while there is a hint."""

    DEFAULT_CSS = """
    _ModalHint { display: none; }
    """

    def show_hint(self, text: str, *, weighty: bool = False) -> None:
        self.display = True
        super().show_hint(text, weighty=weighty)

    def clear_hint(self) -> None:
        super().clear_hint()
        self.display = False


class HintingModal(ModalScreen[Result], DismissOnceMixin[Result], ReportsFailedTasks):
    """Modal screen in which a key without an effect gets a hint."""

    shown: Sequence[Widget] = ()
    """The widgets, from above."""

    def __init__(self) -> None:
        super().__init__()
        self.hints = HintLog()
        self.says: _ModalHint | _QuestionLines = _ModalHint(self.hints)
        """Says hints; where it is none of the widgets that are shown, below them."""

    def compose(self) -> ComposeResult:
        yield from self.shown
        if isinstance(self.says, _ModalHint):
            yield self.says

    def hint(self, text: str, *, weighty: bool = False) -> None:
        self.says.show_hint(text, weighty=weighty)

    @on(events.Key)
    def _hint_at_unbound(self, event: events.Key) -> None:
        if not is_bound(self, event.key):
            self.hint(f"{shown_key(event.key)} does nothing here: Esc goes back.")


def _scrolling(scroll: Callable[[ScrollView], None], end: str) -> Callable[[TextPage], None]:
    """Return an action that scrolls a page, or says that it is at its `end` already."""

    def action(self: TextPage) -> None:
        is_there = self.scroll_y <= 0 if end == PAGE_START else self.scroll_y >= self.max_scroll_y
        if is_there:
            self.hint(end)
        else:
            scroll(self)

    return action


class TextPage(ScrollView, ThemedWidget, can_focus=True):
    """The rows, scrolled with the usual keys."""

    DEFAULT_CSS = """
    TextPage { width: 1fr; height: 1fr; overflow: hidden scroll; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", show=False),
        Binding("k", "scroll_up", show=False),
        Binding("g", "scroll_home", show=False),
        Binding("G", "scroll_end", show=False),
        Binding("space", "page_down", show=False),
    ]

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self._rows_at = rows
        self._rows: Sequence[Sequence[StatusSpan]] = ()

    def on_resize(self) -> None:
        self.reload()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in _SIDEWAYS and super().check_action(action, parameters)

    def hint(self, text: str) -> None:
        """Say one sentence on the screen that the page is part of."""
        if isinstance(self.screen, HintingModal):
            self.screen.hint(text)

    action_scroll_up = _scrolling(ScrollView.action_scroll_up, PAGE_START)
    action_page_up = _scrolling(ScrollView.action_page_up, PAGE_START)
    action_scroll_home = _scrolling(ScrollView.action_scroll_home, PAGE_START)
    action_scroll_down = _scrolling(ScrollView.action_scroll_down, PAGE_END)
    action_page_down = _scrolling(ScrollView.action_page_down, PAGE_END)
    action_scroll_end = _scrolling(ScrollView.action_scroll_end, PAGE_END)

    def reload(self) -> None:
        self._rows = self._rows_at(self.size.width - 2, self.cell_theme)
        self.virtual_size = Size(self.size.width, len(self._rows))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, page = self.size.width, self.cell_theme.background
        row = y + round(self.scroll_y)
        if row >= len(self._rows):
            return Strip([Segment(" " * width, page)])
        return fit(self._rows[row], (), width, page)


class TextModal(HintingModal[None]):
    """A page of text; any of its own keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,q,question_mark", "dismiss", show=False),
    ]

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self.shown = (TextPage(rows),)


class _QuestionLines(KeyLines):
    """A question above its keys."""

    def __init__(self, question: str, hints: HintLog, keys: Keys = ()) -> None:
        super().__init__(keys)
        self._question = question
        self._hints = hints
        self._hint = ""

    def ask(self, question: str) -> None:
        """Ask another question, and say nothing above it."""
        self._question, self._hint = question, ""
        self.refresh(layout=True)

    def show_hint(self, text: str, *, weighty: bool = False) -> None:
        """Say one sentence above the question from now on."""
        self._hints.add(text)
        self._hint = text
        self.refresh(layout=True)

    def rows(self, width: int) -> list[list[StatusSpan]]:
        lines = [*wrapped(self._hint, width), *wrapped(self._question, width)]
        rows = [[StatusSpan(line, self.cell_theme.unread)] for line in lines]
        return [*rows, *(super().rows(width) if self.keys else ())]


class ConfirmModal(HintingModal[bool]):
    """Yes/no dialog; the document behind it keeps updating. Esc answers no."""

    DEFAULT_CSS = """
    ConfirmModal { background: transparent; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "dismiss(True)", show=False),
        Binding("n,escape,q,ctrl+c", "dismiss(False)", show=False, priority=True),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        line = self.says = _QuestionLines(question, self.hints, (("y", "yes"), ("n", "no")))
        self.shown = (line,)


class KeyModal(HintingModal[str | None]):
    """Question whether somebody with an unknown SSH key comes in; Esc decides nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "dismiss('editor')", show=False),
        Binding("v", "dismiss('viewer')", show=False),
        Binding("n", "dismiss('no')", show=False),
        Binding("escape,q,ctrl+c", "dismiss(None)", show=False, priority=True),
    ]

    def __init__(self, words: str) -> None:
        """`words` are who wants what."""
        super().__init__()
        self._words = words
        keys = (("e", "editor"), ("v", "viewer"), ("n", "no"), ("Esc", "later"))
        self.shown = (TextPage(self._rows), KeyLines(keys))

    def _rows(self, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        rows = _titled("Somebody wants to join over SSH", theme)
        rows += [[StatusSpan(line, theme.text)] for line in wrapped(f"{self._words}.", width)]
        rows.append([])
        rows += [[StatusSpan(line, theme.dim)] for line in wrapped(KEY_ADVICE, width)]
        return rows


class LineModal(HintingModal[Result | None]):
    """Asks for a line of text until it is answered; Esc gives None."""

    DEFAULT_CSS = """
    LineModal { background: transparent; }
    LineModal > Vertical { dock: bottom; height: auto; }
    LineModal Input { height: 1; border: none; margin: 0 1; }
    LineModal KeyLines { dock: none; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "dismiss(None)", show=False, priority=True),
    ]

    def __init__(
        self,
        question: str,
        answer: Callable[[str], Awaitable[Result | None]],
        *,
        enter: str,
        longest: int,
        value: str = "",
    ) -> None:
        """`answer` returns the result of a line, None if there has to be another one.

        `enter` is what Enter does, in words, `longest` are the most characters of the line, and
        `value` stands there at first.
        """
        super().__init__()
        line = self.says = self._line = _QuestionLines(question, self.hints)
        field = self._field = Input(value, max_length=longest, compact=True)
        field.cursor_blink = False
        keys = KeyLines((("Enter", enter), ("Esc", "cancel")))
        self._answer = answer
        self.shown = (Vertical(line, field, keys),)

    def ask(self, question: str, value: str) -> None:
        """Ask for another line, at which a value stands."""
        self._line.ask(question)
        self._field.value = value
        self._field.cursor_position = len(value)

    @work(exclusive=True, exit_on_error=False)
    async def on_input_submitted(self, event: Input.Submitted) -> None:
        result = await self._answer(event.value.strip())
        if result is not None:
            self.dismiss(result)


class CommandModal(HintingModal[bool]):
    """Dialog that shows a command and returns whether to run it.

    It is answered with yes by a key that nobody types by the way, and only after the end of the
    command has been on the screen.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+r", "run", show=False, priority=True),
        Binding("escape,ctrl+c", "dismiss(False)", show=False, priority=True),
    ]

    def __init__(self, command: str, reason: str) -> None:
        super().__init__()
        self._command = command
        self._reason = reason
        self._page = TextPage(self._rows)
        self._is_read = False
        """Whether the end of the command has been on the screen."""
        self._answers = KeyLines()
        self.shown = (self._page, self._answers)

    def on_mount(self) -> None:
        self.watch(self._page, "scroll_y", self._look, init=False)
        self.watch(self._page, "virtual_size", self._look, init=False)
        self.call_after_refresh(self._look)

    def _rows(self, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
        rows = [[StatusSpan(COMMAND_TITLE, theme.heading_2)]]
        rows += [[StatusSpan(line, theme.dim)] for line in wrapped(self._reason, width)]
        rows.append([])
        for line in self._command.split("\n"):
            for part in chop_cells(sanitize_for_display(line.expandtabs()), width) or [""]:
                rows.append([StatusSpan(part, theme.text)])
        return rows

    def _look(self) -> None:
        page = self._page
        is_laid_out = page.size.height and page.virtual_size.height
        if is_laid_out and page.max_scroll_y <= round(page.scroll_y):
            self._is_read = True
        first = ("Ctrl+R", "run it") if self._is_read else ("Space", "more of it, to its end")
        self._answers.keys = (first, ("Esc", "do not run it"))

    def action_run(self) -> None:
        if self._is_read:
            self.dismiss(True)
        else:
            self.hint("Go to the end of the command first.")


def help_rows(keymap: KeyMap, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
    """Format the page of keys: beside what they do, or above it in a narrow terminal.

    An action without a key has its title in the palette before what it does.
    """
    rows = _titled("Keys", theme)
    column = KEY_COLUMNS if width >= 3 * KEY_COLUMNS else 2
    for title, actions in keymap.help_sections():
        rows.append([StatusSpan(title, theme.heading_3)])
        for action in actions:
            keys, does = action.shown_keys(), action.help
            if not keys and action.title:
                does = f"{action.title}: {does}"
            lines = wrapped(does, width - column - 4)
            row = [StatusSpan("  " + (keys or "in the palette").ljust(column), theme.focus)]
            if column == KEY_COLUMNS:
                row.append(StatusSpan(lines.pop(0), theme.text))
            rows.append(row)
            rows += [[StatusSpan(" " * (column + 2) + line, theme.text)] for line in lines]
        rows.append([])
    return rows


def hint_rows(hints: HintLog, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
    """The lines of the page of hints, the latest first."""
    rows = _titled("Hints", theme)
    if not (past := list(hints)):
        rows.append([StatusSpan("There has been no hint yet.", theme.dim)])
    for hint in reversed(past):
        rows += _labelled(hint.time, hint.text, width, theme.dim, theme.text)
    return rows


def explanation_rows(text: str, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
    """Format what a language server says of a place."""
    lines = (part for line in text.split("\n") for part in wrapped(line, width))
    rows = [[StatusSpan(sanitize_for_display(one), theme.text)] for one in lines]
    return _titled("At the cursor", theme) + rows


def rejected_summary(refused: Rejection) -> str:
    if not refused.edits:
        return "Something that you wrote last time may not be on the kernel"
    return "One edit was refused" if refused.edits == 1 else f"{refused.edits} edits were refused"


def rejected_location(refused: Rejection) -> str:
    """One sentence: how much was refused, and how to see it."""
    return f"{rejected_summary(refused)}: <key:palette>, Show what was refused, says why and where."


def rejected_rows(refused: Rejection, width: int, theme: CellTheme) -> list[list[StatusSpan]]:
    rows = _titled(rejected_summary(refused), theme)
    for name, words, style in (
        ("why", format_absolute(refused.reason), theme.status_failed),
        ("kept in", str(under_home(refused.file)), theme.text),
    ):
        rows += _labelled(name, sanitize_for_display(words), width, theme.dim, style)
    rows.append([])
    try:
        account = refused.file.read_text("utf-8")[:LONGEST]
    except (OSError, UnicodeError) as error:
        rows.append([StatusSpan(f"It cannot be read: {error}", theme.status_failed)])
        return rows
    # The report begins with a title and the reason, which stand above already.
    for line in account.split("\n")[2:]:
        shown = sanitize_for_display(line)
        quoted = [shown[at : at + width] for at in range(0, len(shown), max(1, width))]
        for part in quoted if line.startswith(" ") else wrapped(shown, width):
            rows.append([StatusSpan(part, theme.text)])
    return rows


def _labelled(
    label: str, text: str, width: int, dim: Style, style: Style
) -> Iterator[list[StatusSpan]]:
    """Yield the rows of a text, with a label before the first."""
    for line in wrapped(text, max(16, width - 10)):
        yield [StatusSpan(label.ljust(10), dim), StatusSpan(line, style)]
        label = ""


def _titled(title: str, theme: CellTheme) -> list[list[StatusSpan]]:
    closing = StatusSpan("   Esc closes this page.", theme.dim)
    return [[StatusSpan(title, theme.heading_2), closing], []]


def wrapped(text: str, width: int) -> list[str]:
    """Lines of whole words, at least one."""
    return wrap_words(text, width) or [""]
