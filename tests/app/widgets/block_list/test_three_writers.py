"""A model streams at the end of a cell, one person types in its middle, another deletes above.

`ANTIPHON_CASES` says how many seeds are played; each is another order of the same three writers.
"""

from __future__ import annotations

import os
import random
from typing import Final

import pytest
from textual import events

from antiphon.widgets.editor import CellEditor
from antiphon_kernel.text.transform import shift_offset
from antiphon_kernel.types.enums import Status
from antiphon_kernel.types.records import TextSplice
from tests.app.widgets.block_list.sample import (
    Sample,
    SampleApp,
    aria_writing,
    ben_at,
    on_screen,
)
from tests.waiting import until

CASES: Final = int(os.environ.get("ANTIPHON_CASES", "2"))
TOKENS: Final = 100
"""Written by the model in one run: half a second of its work."""

LINES: Final = 40
OWN: Final = "0123456789"
"""Typed by the person, over and over: no other text has digits."""


class Run:
    """One order in which the three write."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.sample = Sample()
        lines = [f"line of words {chr(97 + number % 26) * 5}" for number in range(LINES)]
        self.first = "\n".join(lines) + "\n"
        self.block = self.sample.add(self.first, status=Status.RUNNING)
        self.streamed = ""
        self.typed = ""
        self.kept = self.first
        """Rest of the first text."""

    @property
    def text(self) -> str:
        return self.sample.here.text(self.block)

    def stream(self) -> None:
        token = self.rng.choice(["ab ", "token ", "x", "a-long-word ", ".\n", "\n\n"])
        self.sample.peer.append(self.block, token)
        self.streamed += token

    def delete(self, before: int) -> TextSplice | None:
        """Ben, who has not got what is typed there, deletes above a place of the text.

        Returns what he deleted.
        """
        end = before - len(self.typed) - 60
        if end < 20:
            return None
        start = self.rng.randrange(0, end - 10)
        gone = TextSplice(start, self.rng.randint(1, 10), "")
        self.kept = self.kept[:start] + self.kept[start + gone.deleted :]
        self.sample.peer.splice(self.block, start, gone.deleted, "")
        return gone


def neighbours(text: str, offset: int) -> tuple[str, str]:
    return text[max(0, offset - 12) : offset], text[offset : offset + 12]


def screen_row(app: SampleApp, editor: CellEditor) -> int:
    row = app.cells.viewport.row_of(editor.block, editor.cursor_row)
    assert row is not None, "the cursor is on the screen"
    return row


async def type_fast(app: SampleApp, editor: CellEditor, keys: str) -> None:
    """Press keys without a pause, and wait until the cursor is behind what they have typed."""
    end = editor.cursor_offset + len(keys)
    for key in keys:
        app.post_message(events.Key(key, key))
    await until(lambda: editor.cursor_offset == end, "the cursor behind what was typed")


@pytest.mark.parametrize("seed", range(CASES))
async def test_three_writers_in_one_cell_lose_nothing_and_keep_their_places(seed: int) -> None:
    run = Run(seed)
    rng, block = run.rng, run.block
    async with on_screen(run.sample, size=(80, 24)) as (app, pilot):
        app.set_present(5, aria_writing(block, len(run.first)))
        app.cells.scroll_rows(-6)
        await pilot.pause()
        middle = run.first.index("\n", len(run.first) // 2)
        assert app.area.edit(block, middle)
        editor = app.area.editor
        assert editor is not None
        await pilot.pause()
        bens = 5
        app.set_present(6, ben_at(block, bens))
        row = screen_row(app, editor)
        tokens = 0
        while tokens < TOKENS:
            for _ in range(rng.randint(1, 12)):
                run.stream()
                tokens += 1
            before = editor.cursor_offset
            if rng.random() < 0.6:
                left, right = neighbours(run.text, before)
                gone = run.delete(before)
                if gone is not None:
                    bens = shift_offset(bens, gone, stick="left")
                    assert neighbours(run.text, editor.cursor_offset) == (left, right)
            if rng.random() < 0.6:
                keys = OWN[: rng.randint(1, 4)]
                line = editor.cursor_row
                await type_fast(app, editor, keys)
                run.typed += keys
                row += editor.cursor_row - line  # a long line goes on in the next row
            app.cells.draw()
            assert editor.text == run.text
            assert screen_row(app, editor) == row, "the view does not move"
            assert not app.cells.following
            cursors = {one.username: one.offset for one in app.source.cursors.of(block)}
            assert cursors["aria"] == len(run.text)
            assert cursors["ben"] == bens
        run.sample.sync()
        text = run.text
        assert run.sample.peer.text(block) == text
        assert "".join(one for one in text if one.isdigit()) == run.typed
        written = "".join(one for one in text if not one.isdigit())
        assert written == run.kept + run.streamed
