"""Every kind of cell in every state, in the app's layout without a kernel.

    python -m tests.screenshots.cells FOLDER

writes each picture as SVG, to be looked at.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from textual.app import App, ComposeResult
from textual.pilot import Pilot

from antiphon.actions import ActionContext, Mode
from antiphon.app import AntiphonApp
from antiphon.keymap import KeyMap
from antiphon.local_user import LocalUser
from antiphon.render.cell_theme import css_variables
from antiphon.render.timeline import HistoryStep, Timeline, TimelineText
from antiphon.screens.action_scope import PRIVATE
from antiphon.screens.conversation_screen import ConversationScreen
from antiphon.screens.drift_pages import MergeModal
from antiphon.screens.history import HistoryModal, HistorySource
from antiphon.screens.layout import DocumentLayout
from antiphon.screens.outline_view import OutlineView
from antiphon.session import ConnectionStatus, SessionStatus
from antiphon.settings import Settings
from antiphon.textual_patches.screens import terminal_rows
from antiphon.themes import DEFAULT_THEME, bundled_themes_folder, load_themes
from antiphon.widgets.block_list import (
    AuthorRange,
    CellModel,
    DocumentView,
    HitPlace,
    MessageLocation,
    Siblings,
    TextFinder,
    author_labels,
)
from antiphon.widgets.composer import Composer, DraftSync
from antiphon.widgets.composer.draft_sync import LOCAL_BLOCK
from antiphon.widgets.sidebar import ContextName, place_of
from antiphon.widgets.status import HintLog, LiveText, surroundings
from antiphon.widgets.status.header_line import participants
from antiphon_kernel.types.block_metadata import SUMMARY_TYPE
from antiphon_kernel.types.drift import DriftOrigin
from antiphon_kernel.types.enums import (
    Activity,
    BlockKind,
    CallPermission,
    PrincipalKind,
    Role,
    Status,
)
from antiphon_kernel.types.presence import PresenceState, TextPlace
from antiphon_kernel.types.roles import AccessRole
from tests.app.widgets.block_list.sample import AMY, ARIA, BEN, Sample, aria_writing, ben_at
from tests.clocks import ManualClock
from tests.waiting import until

SIZES: Final = ((80, 24), (120, 40), (200, 60))
THEMES: Final = load_themes(bundled_themes_folder(), Path("/nonexistent")).themes
SHELL: Final = {"tool_kind": "shell", "tool_name": "shell"}
MARKDOWN: Final = """\
# A heading
## and one below
Some *slanted*, **strong** and ~~struck~~ words, `code`, a [link](https://example.org/) and 漢字.

1. first
   - inner
2. second

> quoted, by somebody

| name | count |
|------|------:|
| one  |     1 |
| two  |    22 |

```python
def sing(verse: int = 3) -> str:
    return f"verse {verse}"  # a comment
```
"""
ANSWER: Final = """\
## Two hands, one text

The trick is to stop saying *where* and to start saying `next to whom`. Whoever types between these
words stays between them.

1. A person's cursor keeps its neighbours.
2. **A model's cursor** stays behind its own text.

"""
NEW: Final = "And this has just been written"
DIFF: Final = {
    "op": "replace",
    "start_line": 1,
    "end_line": 3,
    "expected_text": "same\nold",
    "content": "same\nnew\nmore",
}


FILE: Final = 'def sing(verse: int) -> str:\n    return f"verse {verse}"\n'
ORIGIN: Final = DriftOrigin("d", "b" * 32, "notes", 12, "ben")


OURS: Final = "Begin with the journal.\nThen comes the app.\n"
THEIRS: Final = OURS.replace("journal", "codec").replace("app", "kernel")
MERGE: Final[dict[str, Any]] = {
    "source_label": "tidy",
    "target_label": "default",
    "conflicts": 1,
    "offers": [],
    "changes": [
        {
            "block_id": "b",
            "name": "default.aria.2",
            "source_block": "s",
            "before": OURS,
            "after": OURS.replace("app", "kernel"),
            "conflicts": [
                {
                    "number": 0,
                    "start": 0,
                    "end": 23,
                    "base": "Begin anywhere.",
                    "ours": OURS[:23],
                    "theirs": THEIRS[:21],
                }
            ],
        },
        {
            "block_id": "c",
            "name": "default.amy.3",
            "source_block": "t",
            "before": MARKDOWN,
            "after": MARKDOWN.replace("second", "*last*"),
            "conflicts": [],
        },
    ],
}


class StillCells(CellModel):
    """Cells in which the signs of running calls do not move."""

    def tick(self, blocks: Iterable[str]) -> None:
        """Leave them as they are."""


class CellsApp(App[None]):
    """The widgets of the document screen around a sample."""

    CSS = AntiphonApp.CSS
    AUTO_FOCUS = ConversationScreen.AUTO_FOCUS

    def __init__(self, sample: Sample, theme: str) -> None:
        super().__init__()
        self.animation_level = "none"
        self.sample = sample
        for one in THEMES.values():
            self.register_theme(one)
        self.theme = theme
        self.clock = ManualClock()
        self.present: dict[int, PresenceState] = {}
        user = LocalUser()
        user.update(AccessRole.EDITOR)
        self.source = StillCells(
            sample.here, me=AMY, presence=lambda: self.present, user=user, clock=self.clock
        )
        self.area = DocumentView(self.source)
        self.draft = DraftSync(sample.here)
        composer = Composer(self.draft, user)
        composer.mark.colour = 0
        self.source.name_keys = KeyMap().name_keys
        self.frame = DocumentLayout(
            self.area, composer, HintLog(), KeyMap(), place="choir", settings=Settings()
        )
        self.outline = OutlineView(self.source, self.area, self.frame.outline)

    def compose(self) -> ComposeResult:
        yield self.frame

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return css_variables(self.current_theme)

    def on_mount(self) -> None:
        self.frame.fit(self.size)

    def show_mode(self, mode: Mode, *, placeholder: str = "i to write", **fields: Any) -> None:
        """Show what the document screen shows around the cells in this mode."""
        frame = self.frame
        word = PRIVATE if self.draft.is_private else mode.value
        frame.footer.situation = ActionContext(mode=mode, mode_word=word, live=True, **fields)
        frame.notice.mode = word
        frame.composer.editor.says = (placeholder,)
        me = PresenceState(AMY, "amy", PrincipalKind.HUMAN, 0, "m", None, None, None, "typing")
        people = participants(me, self.present.values())
        frame.header.show("default", people, SessionStatus(ConnectionStatus.LIVE))
        frame.sidebar.show_people([(one, place_of(one, None, mode.value)) for one in people])
        contexts = [
            ContextName("a" * 32, "default"),
            ContextName("b" * 32, "notes", unread=3),
            ContextName("c" * 32, "try-2", source="a" * 32, unread=1, ahead=3, behind=1),
            ContextName("d" * 32, "try-2-again", source="c" * 32, unread=1, ahead=3, behind=1),
        ]
        frame.sidebar.show_contexts(contexts, "a" * 32)
        frame.drafts.show(self.source.drafts())

    def write_message(self, text: str) -> None:
        """Put a text into the composer, as if it were typed."""
        self.draft.local.splice(LOCAL_BLOCK, 0, len(self.draft.text), text)


def kinds() -> Sample:
    """Return a document with a block of each kind in each state."""
    sample = Sample()
    think, text = BlockKind.THINKING, "One line.\nAnother line.\n"

    def call(text: str, status: Status = Status.DONE, **fields: Any) -> str:
        fields = {**SHELL, **fields}
        return sample.add(text, kind=BlockKind.TOOL_CALL, status=status, **fields)

    def result(text: str, status: Status = Status.DONE, **fields: Any) -> None:
        fields = {**SHELL, **fields}
        kind = BlockKind.TOOL_RESULT
        sample.add(text, kind=kind, status=status, role=Role.TOOL, **fields)

    sample.add("Sing *both* verses of `choir.md`,\nthen say what is missing.", author=AMY)
    sample.add("And who sings the third?", author=BEN)
    sample.add(text, kind=think)
    sample.add(text, kind=think, status=Status.RUNNING)
    sample.add(text, kind=think, status=Status.ERROR, stop_reason="interrupted")
    sample.add(MARKDOWN)
    sample.add(text, collapsed=True)
    sample.add("This much was", stop_reason="max_tokens")
    sample.add("No.", stop_reason="refusal")
    sample.add("The connec", stop_reason="truncated")
    sample.add("I was about to", status=Status.ERROR, stopped_by="amy")
    sample.add("Models do not read this.", excluded=True)
    sample.add("Sing softly.", role=Role.SYSTEM, author=BEN)
    call("git log --oneline -3", exit_code=0, duration_ms=340)
    result("5f1c0de The second choir answers\n9a0e4b7 First verse\n")
    call("make test", exit_code=2, duration_ms=41_300)
    result("".join(f"test {number} ... ok\n" for number in range(8)), Status.ERROR, exit_code=2)
    call("singe", Status.ERROR, exit_code=127, duration_ms=1_900)
    result("singe: not found", is_error=True)
    call("make -j4 && " * 12 + "true", Status.RUNNING)
    result("".join(f"step {n}\n" for n in range(9)) + "10 %\r55 %", Status.RUNNING)
    call("sleep 5", Status.PENDING)
    asked = CallPermission.ASKED
    call("rm -rf drafts", Status.PENDING, permission=asked, runs_for="amy")
    call("rm -rf verses", Status.PENDING, permission=asked, runs_for="ben")
    call("rm -rf /", Status.ERROR, permission=CallPermission.DENIED)
    call("tail -f log", Status.ERROR, stopped_by="amy")
    call("cat notes", exit_code=0, duration_ms=7_500_000)
    result(
        "\x1b[1;31mred\x1b[0m \x1b[42mgreen\x1b[0m \x1b[2J\x1b]0;title\x07 a\tb\n", truncated=True
    )
    call("seq 9", exit_code=0)
    result("".join(f"{number}\n" for number in range(1, 10)))
    call("true", exit_code=0)
    result("", edited_after_done=True)
    arguments = {"path": "choir.md", "depth": 2}
    call("", tool_kind="mcp", tool_name="read", input=json.dumps(arguments), duration_ms=80)
    edit = {"block_id": "choir", "operations": [DIFF]}
    call("", tool_kind="builtin", tool_name="block_edit", input=json.dumps(edit))
    sample.add(FILE, kind=BlockKind.FILE, path="app/sing.py", author=AMY)
    origin: dict[str, Any] = {"drift_kind": "push", "metadata": {"drift": ORIGIN.as_json()}}
    drift = sample.add("", kind=BlockKind.DRIFT, author=BEN, **origin)
    sample.add("A *verse* from elsewhere.", parent=drift, metadata={"drift": ORIGIN.id})
    sample.add("The model cannot be reached: 529 overloaded.\nAsk again.", kind=BlockKind.ERROR)
    sample.add("*A* sonnet", kind="sonnet")  # type: ignore[arg-type]
    summary: dict[str, Any] = {"metadata": {"type": SUMMARY_TYPE}}
    sample.add("Both verses were sung.", role=Role.SYSTEM, **summary)
    sample.add("The last question.", author=AMY)
    sample.add("I wonder whether the", author=BEN, status=Status.PENDING)
    sample.add("This is on its way", author=AMY, status=Status.PENDING)
    return sample


async def every_kind(app: CellsApp, pilot: Pilot[None]) -> AsyncIterator[str]:
    """Show all cells, a page after the other."""
    source, cells = app.source, app.area.cells
    by_kind = {source.view(block).text: block for block in source.ids()}
    open_thinking = next(b for b in source.ids() if source.header(b).kind == BlockKind.THINKING)
    source.set_folded([open_thinking], False)
    source.deliveries.begin(by_kind["This is on its way"])
    waiting = by_kind["And who sings the third?"]
    app.present[3] = PresenceState(
        *(ARIA, "aria", PrincipalKind.MODEL, 3, "w", waiting, None, None, Activity.WAITING)
    )
    source.presence_changed()
    first_answer = by_kind[MARKDOWN]
    places = tuple(MessageLocation("a" * 32, block) for block in (first_answer, waiting))
    source.branches.show({(first_answer,): Siblings(0, places)})
    app.show_mode(Mode.WRITE, placeholder="Message, or !command · Esc to the cells")
    cells.viewport.scroll_home()
    cells.draw()
    first, number = -1, 0
    while cells.viewport.first_row != first:
        first, number = cells.viewport.first_row, number + 1
        yield f"page {number}"
        cells.page(1)
        cells.draw()


def answered() -> Sample:
    """Return a document with a question and an answer that is not finished."""
    sample = Sample()
    sample.add("How do two write in one text?", author=AMY)
    sample.add(ANSWER, status=Status.RUNNING)
    return sample


async def one_answer(app: CellsApp, pilot: Pilot[None]) -> AsyncIterator[str]:
    """Show an answer as it is written, chosen, edited, searched, and as it came to be."""
    cells, frame, source = app.area.cells, app.frame, app.source
    question, answer = source.ids()
    app.sample.peer.append(answer, NEW)
    text = source.text(answer)
    end = len(text)
    app.present[1] = aria_writing(answer, end)
    app.present[2] = ben_at(answer, text.index("Whoever"), text.index("between these"))
    source.presence_changed()
    app.show_mode(Mode.WRITE, placeholder="Message, or !command", stoppable="aria")
    frame.notice.suggest("↑ then Enter: fix the typo above while aria writes", label="TRY")
    yield "written"

    app.clock.ms += 5_000
    source.fade()
    cells.focus()
    cells.focus_cell(answer)
    start = text.index("A person")
    source.point(TextPlace(answer, start, start + 8))
    app.show_mode(Mode.NAVIGATE, focused=True, theirs=True, foldable=True, stoppable="aria")
    frame.notice.suggest(None, label="")
    frame.notice.show_hint("Copied 312 characters to the terminal's clipboard (OSC 52).")
    yield "chosen"

    frame.notice.clear_hint()
    source.point(None)
    app.area.edit(answer, text.index("A person"))
    await until(lambda: app.area.editor is not None and app.area.editor.has_focus, "the editor")
    app.show_mode(Mode.EDIT, placeholder="Esc leaves the cell", stoppable="aria")
    yield "edited"

    app.area.leave()
    middle = text.index("Whoever")
    labels = author_labels({"aria", "you", "benedict"}, cells.looks.columns)
    runs = (
        (0, middle, 3, labels["aria"]),
        (middle, middle + 40, 0, labels["you"]),
        (middle + 40, end, 5, labels["benedict"]),
    )
    tints = {answer: [AuthorRange(*run) for run in runs]}
    cells.set_author_ranges(tints | {question: [AuthorRange(0, 9, 0, labels["you"])]})
    app.show_mode(Mode.NAVIGATE, focused=True, theirs=True, foldable=True)
    yield "by author"

    cells.set_author_ranges({})
    finder = TextFinder(source)
    finder.search("between")
    finder.step(60)
    cells.show_hits(finder, finder.beside(HitPlace(question, -1), 1))
    frame.find.set_query("between")
    frame.find.open("this context")
    frame.find.count.words = f"1 of {finder.count}"
    app.show_mode(Mode.FIND, finding=True, placeholder="Esc goes back")
    yield "found"

    cells.show_hits(None)
    finder.close()
    frame.find.hide()
    app.write_message("!make test | tail\nprintf done")
    app.sample.add("I wonder whether the", author=BEN, status=Status.PENDING)
    around = LiveText("aria", 3, *surroundings(text, end), others=2, unread=14)
    frame.live.show(around)
    frame.composer.editor.focus()
    app.show_mode(Mode.WRITE, stoppable="aria", writer="aria", composing=True)
    yield "command"

    frame.live.show(None)
    app.draft.make_private()
    app.write_message("@aria nobody sees this")
    frame.composer.show_role()
    app.show_mode(Mode.WRITE, private=True, composing=True)
    yield "private"

    await app.push_screen(HistoryModal(WrittenByTwo(answer), answer))
    await until(lambda: any("verses." in row.text for row in terminal_rows(app)), "the version")
    yield "history"

    await app.push_screen(MergeModal(MERGE))
    yield "conflict"

    await pilot.press("t", "n")
    yield "change"


class WrittenByTwo(HistorySource):
    """The history of a cell that two have written."""

    def __init__(self, block: str) -> None:
        self.order = []
        changes = ((1, ARIA), (2, ARIA), (3, AMY))
        began = "2025-01-01T00:00:00.000Z"
        self._steps = [HistoryStep(at, began, who, who, "edit", {block: at}) for at, who in changes]

    async def steps(self, block: str | None) -> list[HistoryStep]:
        return self._steps

    async def timeline(self, block: str) -> Timeline:
        words = (("The end ", AMY, 3, None), ("of both ", ARIA, 1, 2), ("verses.", ARIA, 2, None))
        return Timeline(tuple(TimelineText(*word) for word in words), 3)

    def author(self, principal: str) -> tuple[str, int]:
        return {AMY: ("you", 0), ARIA: ("aria", 3)}[principal]

    def title(self, block: str) -> tuple[str, int]:
        return "¶2", 3


async def settled(app: CellsApp, pilot: Pilot[None]) -> None:
    """Wait until the screen shows all that the widgets know."""
    cells, before = app.area.cells, None
    while before != (rows := terminal_rows(app)):
        before = rows
        app.area.cells.draw()
        app.outline.update()
        await pilot.pause()
        await until(lambda: cells.mapping is None, "the scroll bar")


Shots = Callable[[CellsApp, Pilot[None]], AsyncIterator[str]]
SHOTS: Final[Mapping[Shots, Callable[[], Sample]]] = {every_kind: kinds, one_answer: answered}


async def pictures(
    shots: Shots, size: tuple[int, int], theme: str = DEFAULT_THEME, *, last: str = ""
) -> AsyncIterator[tuple[str, CellsApp]]:
    """Yield the name of each picture and the app that shows it.

    Args:
        last: name of the one after which there are no more.
    """
    app = CellsApp(SHOTS[shots](), theme)
    async with app.run_test(size=size) as pilot:
        async for name in shots(app, pilot):
            await settled(app, pilot)
            yield name, app
            if name == last:
                return


async def save_all(folder: Path) -> None:
    """Write every picture as SVG: in all sizes, and at the middle size in all themes."""
    folder.mkdir(exist_ok=True)
    for shots in SHOTS:
        for size in SIZES:
            for theme in THEMES if size == SIZES[1] else (DEFAULT_THEME,):
                async for name, app in pictures(shots, size, theme):
                    path = folder / f"{shots.__name__}-{size[0]}-{theme}-{name}.svg"
                    path.write_text(app.export_screenshot(title="antiphon", simplify=True))


if __name__ == "__main__":
    asyncio.run(save_all(Path(sys.argv[1])))
