"""Code that fills a page: drawn in parts, and coloured while it is edited."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.render.code_source import CodeCutter, CodeSource, page_of_code
from antiphon.render.lines import RenderedCell, SegmentedText
from tests.app.render.notation import THEME, picture
from tests.app.widgets.editor.texts import applied, fractions, splice_of

FUNCTION = 'def name_{0}(one: int) -> str:\n    """Say it."""\n    return "{0}"\n\n\n'
CODE = "".join(FUNCTION.format(number) for number in range(200))
WINDOW = range(300, 340)

codes = st.lists(
    st.sampled_from(
        ["def a():\n", "    return 1  # one\n", "\n", "x" * 50 + "\n", "\tb = 2\n", "c"]
    ),
    max_size=20,
).map("".join)


def whole(cell: RenderedCell) -> RenderedCell:
    return cell.settled(0, cell.line_count + 1_000_000)[0]


@given(data=st.data(), size=st.integers(5, 60))
def test_page_that_changes_looks_as_drawn_afresh_and_shows_all(
    data: st.DataObject, size: int
) -> None:
    cutter = CodeCutter(30, THEME, "python", page_of_code, size=size)
    stream, text = SegmentedText(cutter), ""
    for _ in range(4):
        edit = data.draw(st.tuples(fractions, fractions, codes))
        text = applied(text, splice_of(text, *edit))
        cell = whole(stream.update(text))
        assert list(cell.lines) == list(whole(SegmentedText(cutter).update(text)).lines)
        # Rows are cut where an editor cuts them, wherever a part begins.
        assert [one.text for one in cell.lines] == [
            one.text for one in page_of_code(text, "", 30, THEME).lines
        ]
        assert picture(cell, text)


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        (312, ['    return "62"'], ['    return "62" + one']),
        (311, ['    """Say it."""'], ['    """Say it.']),
        (310, ["def name_62(one: int) -> str:"], ['"""', "def name_62(one: int) -> str:"]),
        (312, ['    return "62"', "", ""], ["    return 1"]),
        (314, [""], ["", "# new", ""]),
    ],
    ids=["a word", "a string opened", "a string opened on a new line", "lines joined", "new lines"],
)
def test_lines_are_coloured_after_an_edit_as_if_they_were_read_afresh(
    line: int, old: list[str], new: list[str]
) -> None:
    lines = CODE.split("\n")
    source = CodeSource(lines, "python")
    before = [source.spans(one, THEME) for one in WINDOW]
    assert len(set(before)) > 3
    assert lines[line : line + len(old)] == old
    lines[line : line + len(old)] = new
    source.replaced(line, line + len(old) - 1, line + len(new) - 1)
    fresh = CodeSource(lines, "python")
    for one in WINDOW:
        assert source.spans(one, THEME) == fresh.spans(one, THEME), (one, lines[one])
