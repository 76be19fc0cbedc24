"""Keys and pastes in an editor that is open in an app."""

from __future__ import annotations

from textual import events
from textual._xterm_parser import XTermParser

from antiphon.widgets.editor import CellEditor
from antiphon_kernel.types.enums import BlockKind
from tests.app.widgets.block_list.sample import (
    AMY,
    Heard,
    Sample,
    on_screen,
)


async def test_keys_that_are_not_text_become_messages(sample: Sample) -> None:
    first = sample.add("first", author=AMY)
    sample.add("ls", kind=BlockKind.TOOL_CALL, tool_kind="shell")
    second = sample.add("second")
    heard = Heard()
    async with on_screen(sample, heard=heard) as (app, pilot):
        app.area.edit(second, 6)
        await pilot.press("!", "ctrl+z", "ctrl+y", "ctrl+up")
        await pilot.pause()
        assert heard.of(CellEditor.UndoRequested)
        assert heard.of(CellEditor.RedoRequested)
        assert sample.here.text(second) == "second!"
        editor = app.area.editor
        assert editor is not None and editor.block == first
        (edited,) = heard.of(CellEditor.Edited)
        assert edited.inserted == 1
        moved = heard.of(CellEditor.CursorMoved)[-1].editor
        assert (moved.block, moved.cursor_offset, moved.anchor_offset) == (first, 0, None)
        await pilot.press("escape")
        await pilot.pause()
        assert app.area.editor is None
        assert heard.of(CellEditor.Left)


async def test_every_character_that_is_no_control_is_text(sample: Sample) -> None:
    block = sample.add("")
    typed = "a\u00a0b\u3000\u200c\u200d\ufe0f\u2028\u00ad👩\u200d👩\u200d👧\ue000\U000e0067z"
    async with on_screen(sample) as (app, pilot):
        app.area.edit(block)
        await pilot.pause()
        for event in XTermParser().feed(typed + "\x01\x9b"):
            app.post_message(event)
        await pilot.pause()
        assert sample.here.text(block) == typed


async def test_paste_has_plain_line_ends_and_the_rest_as_it_was(sample: Sample) -> None:
    block = sample.add("")
    async with on_screen(sample) as (app, pilot):
        app.area.edit(block)
        await pilot.pause()
        app.post_message(events.Paste("a\r\nb\rc\td\x0c\u2028\x1b[31m"))
        await pilot.pause()
        assert sample.here.text(block) == "a\nb\nc\td\x0c\u2028\x1b[31m"
        assert app.row_with("␛[31m") == app.row_with("c   d␌↵")


async def test_tab_indents_as_the_text_does(sample: Sample) -> None:
    spaces, tabs = sample.add("if x:\ny"), sample.add("if x:\n\ty\nz")
    async with on_screen(sample) as (app, pilot):
        app.area.edit(spaces, 6)
        await pilot.press("tab", "end", "enter", "z", "tab", "shift+tab")
        await pilot.pause()
        assert sample.here.text(spaces) == "if x:\n    y\nz   "
        app.area.edit(tabs, 9)
        await pilot.press("tab", "ctrl+a", "shift+up", "shift+up", "tab", "shift+tab")
        await pilot.pause()
        assert sample.here.text(tabs) == "if x:\n\ty\n\tz"
