"""Headings of a text, read once and followed from then on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.render.markdown_source import Heading, Headings, without_marks
from antiphon_kernel.types.records import TextSplice
from tests.app.widgets.editor.texts import applied, fractions, splice_of


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Why is **`2 * 3`** six?", "Why is 2 * 3 six?"),
        ("> a ***bold*** [link](https://a.org) and ~~not~~ this", "a bold link and not this"),
        ("- _one_ of snake_case_names", "one of snake_case_names"),
        ("2 * 3 * 4 and a ` alone", "2 * 3 * 4 and a ` alone"),
        ("**`", "**`"),
    ],
)
def test_without_marks_leaves_the_words(text: str, shown: str) -> None:
    assert without_marks(text) == shown


pieces = st.lists(
    st.sampled_from(["\n", "# ", "## a", "#", " ", "```", "~~~~", "x", "\n\n# b\n", "é"]),
    max_size=12,
).map("".join)


def test_headings_found_outside_of_fences_without_marks() -> None:
    text = "# One `code` #\n\n```\n# no\n~~~\n```\ntext\n   ### **Three**\n#no\n    # no\n#\n"
    assert Headings(text).found() == [
        Heading(0, 1, "One code"),
        Heading(text.index("   ###"), 3, "Three"),
    ]


edits = st.tuples(fractions, fractions.map(lambda size: size**3), pieces)


@given(text=pieces, changes=st.lists(st.lists(edits, min_size=1, max_size=3), max_size=3))
def test_headings_updated_equal_headings_read_afresh(
    text: str, changes: list[list[tuple[float, float, str]]]
) -> None:
    headings = Headings(text)
    for change in changes:
        splices = []
        for edit in change:
            splices.append(splice_of(text, *edit))
            text = applied(text, splices[-1])
        headings.update(text, splices)
        assert headings.found() == Headings(text).found()


def test_update_reads_the_changed_lines_only() -> None:
    text = "# Heading\n\nSome words of a paragraph.\n\n" * 1_000
    headings = Headings(text)
    before, middle = headings.characters_read, text.index("words", len(text) // 2)
    headings.update(text[:middle] + "a" + text[middle:], [TextSplice(middle, 0, "a")])
    assert headings.characters_read - before < 100
    assert len(headings.found()) == 1_000
