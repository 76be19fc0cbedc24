from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.widgets.composer.draft_sync import DraftUndo
from antiphon_kernel.types.records import TextSplice
from antiphon_kernel.types.typing_run import TYPING_PAUSE_MS, TYPING_UNITS
from tests.app.widgets.editor.texts import applied

Made = Sequence[tuple[int, TextSplice]]
"""Changes and their times."""


def typed(text: str, at: int = 0, *, now: int = 0) -> Made:
    return [(now, TextSplice(at + number, 0, key)) for number, key in enumerate(text)]


def steps_back(undo: DraftUndo, text: str) -> list[str]:
    """Return the texts that undo goes through."""
    texts = []
    while splices := undo.step(-1):
        text = applied(text, *splices)
        texts.append(text)
    return texts


changes = st.tuples(st.integers(0, 9), st.integers(0, 4), st.text("ab\n🙂", max_size=5))


@given(st.text("xy", max_size=6), st.lists(st.tuples(changes, st.integers(0, 2000)), max_size=12))
def test_undo_and_redo_go_through_the_same_texts(
    before: str, made: list[tuple[tuple[int, int, str], int]]
) -> None:
    undo, text, now = DraftUndo(before), before, 0
    for (at, deleted, inserted), pause in made:
        now += pause
        offset = min(at, len(text))
        splice = TextSplice(offset, min(deleted, len(text) - offset), inserted)
        undo.record([splice], now)
        text = applied(text, splice)
    back = [text, *steps_back(undo, text)]
    assert back[-1] == before
    again = [back[-1]]
    while splices := undo.step(1):
        again.append(applied(again[-1], *splices))
    assert again == back[::-1]


@pytest.mark.parametrize(
    ("made", "texts"),
    [
        (typed("a" * (TYPING_UNITS + 5)), ["a" * TYPING_UNITS, ""]),
        ((*typed("one"), *typed(" two", 3, now=TYPING_PAUSE_MS)), ["one", ""]),
        (typed("one\ntwo"), ["one\n", ""]),
        ((*typed("one"), *typed("x")), ["one", ""]),
        ((*typed("one"), (0, TextSplice(2, 1, "")), (0, TextSplice(1, 1, ""))), ["one", ""]),
        ((*typed("one"), (0, TextSplice(0, 3, "t")), *typed("wo", 1)), ["t", "one", ""]),
    ],
    ids=["until it is long", "pause", "new line", "other place", "deleting", "replaced selection"],
)
def test_typing_in_one_go_is_one_step(made: Made, texts: list[str]) -> None:
    undo, text = DraftUndo(""), ""
    for now, splice in made:
        undo.record([splice], now)
        text = applied(text, splice)
    assert steps_back(undo, text) == texts


def test_typing_after_an_undo_leaves_nothing_to_redo() -> None:
    undo = DraftUndo("")
    undo.record([TextSplice(0, 0, "one")], 0)
    undo.step(-1)
    undo.record([TextSplice(0, 0, "two")], 0)
    assert not undo.step(1)
