"""Hints and footers in terminals of all widths."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from textual.app import App
from textual.geometry import Size
from textual.screen import ModalScreen

import antiphon
from antiphon.actions import ActionContext, Mode, shown_key
from antiphon.keymap import KeyMap
from antiphon.local_user import SHUT_OUT, VIEWER
from antiphon.options import AppOptions
from antiphon.screens.conversation_screen import placeholder
from antiphon.screens.history import HistoryModal
from antiphon.screens.layout import MIN_COLUMNS
from antiphon.screens.modals import CommandModal, ConfirmModal, KeyModal
from antiphon.screens.panels import ContextsPanel, Panel, PeoplePanel
from antiphon.screens.reading import ReadingPanel
from antiphon.session import Session
from antiphon.textual_patches.screens import terminal_rows
from antiphon.themes import DEFAULT_THEME
from antiphon.widgets.status import FooterLine, HintBar
from antiphon_kernel.types.signal import Signal
from tests.app.opened import Opened, World, opened
from tests.screenshots.cells import CellsApp, WrittenByTwo, answered
from tests.waiting import until

WIDTHS = [40, 80, 120, 200]
NARROW_AND_WIDE = [40, 80]
PLACEHOLDER = "a-long-name"


def written(node: ast.expr) -> str | None:
    """Return the text of a string in the source, something in the place of each value."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(written(part) or PLACEHOLDER for part in node.values)
    return None


def hints() -> Iterator[str]:
    """Yield the sentences that the source of the app hints."""
    for path in sorted(Path(antiphon.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = getattr(node.func, "attr", "")
            if name.lstrip("_") in {"hint", "show_hint"} and (text := written(node.args[0])):
                yield text


def situations(mode: Mode) -> Iterator[ActionContext]:
    """Yield situations of a mode: nothing, everything, and each property by itself."""
    plain = ActionContext(mode=mode, mode_word=mode.value)
    yield plain
    changes = {name: not value for name, value in vars_of(plain).items() if isinstance(value, bool)}
    names = {"stoppable": PLACEHOLDER, "writer": PLACEHOLDER}
    for name, value in {**changes, **names}.items():
        yield replace(plain, **{name: value})  # type: ignore[arg-type]
    yield replace(plain, **{**changes, **names, "reading": False})  # type: ignore[arg-type]


def vars_of(situation: ActionContext) -> dict[str, object]:
    return {name: getattr(situation, name) for name in situation.__dataclass_fields__}


def check_hints(there: Opened) -> None:
    """Check that every hint fits into its rows, or is cut where it can be read again."""
    texts = sorted(set(hints()))
    assert len(texts) > 60, "hints are not found in the source"
    bar = there.screen.query_one(HintBar)
    width = there.app.size.width
    for text in texts:
        there.screen.hint(text)
        height = bar.get_content_height(Size(), Size(), bar.size.width)
        rows = [bar.render_line(y).text.strip("─ ") for y in range(height)]
        shown, whole = " ".join(rows).split(), (bar.hint or "").split()
        assert height <= 3
        is_cut = rows[-1].endswith("…")
        assert is_cut or "".join(shown) == "".join(whole), text
        assert not is_cut or width == 40, f"{text} is cut at {width} columns"
        assert bar.hint in [one.text for one in there.screen.controllers.hints]
        bar.clear_hint()


def check_footer(there: Opened) -> None:
    """Check that the footer names whole keys, in every situation and at all widths."""
    footer = there.screen.query_one(FooterLine)
    for situation in chain.from_iterable(map(situations, Mode)):
        footer.situation = situation
        labels = [
            (shown_key(action.keys[0]), f" {situation.fill(action.words)}")
            for action in KeyMap().footer_actions(situation)
        ]
        for width in WIDTHS:
            pieces = [piece.text for piece in footer.pieces(width)[0]]
            assert sum(map(cell_len, pieces)) <= width - 2
            named = list(zip(pieces[2::3], pieces[3::3], strict=True))
            assert named == labels[: len(named)]
            assert named, "no key is named"


QUESTION = f"Stop {PLACEHOLDER}, then take back 312 words by {PLACEHOLDER}, two minutes ago?"

READ = f"A message of {PLACEHOLDER} that has many words: " + "more of them " * 20


class Reading(Session):
    """Answers what a model reads: a message with long lines."""

    def __init__(self) -> None:
        super().__init__(AppOptions(Path("nowhere")))

    async def call(self, tool: str, params: Mapping[str, Any]) -> dict[str, Any]:
        text = f"[USER MESSAGE]\n{READ}\nlast: " + "x" * 150
        item = {"type": "user.prompt", "block_id": "b", "text": text, "cache_points": ["tail"]}
        return {"model": "aria", "count": 1, "items": [item]}


PAGES: Mapping[Callable[[], ModalScreen[Any]], Sequence[str]] = {
    lambda: HistoryModal(WrittenByTwo("block"), "block"): (
        *("← → version", "[ ] ten", "Tab page"),
        *("r restore", "F fork here", "Esc leave"),
    ),
    lambda: ConfirmModal(QUESTION): (*QUESTION.split(), "y yes", "n no"),
    lambda: KeyModal(f"{PLACEHOLDER} wants to join"): ("e editor", "v viewer", "n no", "Esc later"),
    lambda: CommandModal("true\n" * 99, "It is long."): (
        "Space more of it, to its end",
        "Esc do not run it",
    ),
    lambda: CommandModal("true", "It was pasted."): ("Ctrl+R run it", "Esc do not run it"),
    lambda: ReadingPanel(Reading(), None, Signal()): (
        *("What aria reads", "Space fold", "z all", "Esc leave"),
        *("[USER MESSAGE]", *READ.split(), "last:", "cached up to here: tail"),
    ),
}
"""Pages over the document, and what has to be read in each."""


def shows(app: App[Any], words: str) -> bool:
    return any(words in row.text for row in terminal_rows(app))


@pytest.mark.parametrize("width", NARROW_AND_WIDE)
async def test_page_names_all_its_keys(width: int) -> None:
    app = CellsApp(answered(), DEFAULT_THEME)
    async with app.run_test(size=(width, 24)):
        for make, words in PAGES.items():
            page = make()
            await app.push_screen(page)
            for word in words:
                await until(partial(shows, app, word), word)
            assert not any("…" in row.text for row in terminal_rows(app)[-4:])
            page.dismiss()


async def test_footers_name_whole_keys_hints_wrap_and_panels_name_all_their_keys(
    there: Opened,
) -> None:
    check_footer(there)
    for width in NARROW_AND_WIDE:
        await there.pilot.resize_terminal(width, 24)
        check_hints(there)
        for key, keys in (("f4", ContextsPanel.own_keys()), ("f5", PeoplePanel.own_keys())):
            await there.press(key)
            for shown, words in (*keys, ("Esc", "leave")):
                await there.sees(f"{shown} {words}")
            await there.press("escape")
            await until(lambda: not isinstance(there.app.screen, Panel), "it has closed")


async def test_empty_message_says_what_it_is_for_at_the_least_width(here: World) -> None:
    async with opened(here, size=(MIN_COLUMNS, 24)) as there:
        screen = there.screen
        room = screen.composer.editor.size.width
        for is_private, mode in product((False, True), Mode):
            words = placeholder(
                screen.keymap, screen.user, mode, is_private=is_private, finds=False
            )
            assert cell_len(words[0]) <= room
        for denial in (VIEWER, SHUT_OUT):
            assert cell_len(screen.keymap.name_keys(denial.instead[0])) <= room
