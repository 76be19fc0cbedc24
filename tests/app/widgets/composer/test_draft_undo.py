from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from antiphon.widgets.composer.draft_undo import DraftUndo
from antiphon_kernel.types.records import TextSplice
from antiphon_kernel.types.typing_run import TYPING_PAUSE_MS, TYPING_UNITS


def applied(text: str, *splices: TextSplice) -> str:
    for one in splices:
        text = text[: one.offset] + one.inserted + text[one.offset + one.deleted :]
    return text


def typed(undo: DraftUndo, text: str, at: int = 0, *, now: int = 0) -> None:
    for number, key in enumerate(text):
        undo.record([TextSplice(at + number, 0, key)], now)


def steps_back(undo: DraftUndo, text: str) -> list[str]:
    """Return the texts that undo goes through."""
    texts = []
    while splices := undo.undo():
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
    while splices := undo.redo():
        again.append(applied(again[-1], *splices))
    assert again == back[::-1]


def test_typing_in_one_go_is_one_step_until_it_is_long() -> None:
    undo = DraftUndo("")
    typed(undo, "a" * (TYPING_UNITS + 5))
    assert steps_back(undo, "a" * (TYPING_UNITS + 5)) == ["a" * TYPING_UNITS, ""]


def test_pause_ends_a_step() -> None:
    undo = DraftUndo("")
    typed(undo, "one")
    typed(undo, " two", 3, now=TYPING_PAUSE_MS)
    assert steps_back(undo, "one two") == ["one", ""]


def test_new_line_ends_a_step() -> None:
    undo = DraftUndo("")
    typed(undo, "one\ntwo")
    assert steps_back(undo, "one\ntwo") == ["one\n", ""]


def test_other_place_begins_a_step() -> None:
    undo = DraftUndo("")
    typed(undo, "one")
    typed(undo, "x")
    assert steps_back(undo, "xone") == ["one", ""]


def test_deleting_is_a_step_of_its_own() -> None:
    undo = DraftUndo("")
    typed(undo, "one")
    for at in (2, 1):
        undo.record([TextSplice(at, 1, "")], 0)
    assert steps_back(undo, "o") == ["one", ""]


def test_replaced_selection_is_a_step_of_its_own() -> None:
    undo = DraftUndo("")
    typed(undo, "one")
    undo.record([TextSplice(0, 3, "t")], 0)
    typed(undo, "wo", 1)
    assert steps_back(undo, "two") == ["t", "one", ""]


def test_typing_after_an_undo_leaves_nothing_to_redo() -> None:
    undo = DraftUndo("")
    typed(undo, "one")
    undo.undo()
    typed(undo, "two")
    assert not undo.redo()
