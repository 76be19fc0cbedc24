"""Looks of Markdown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from antiphon.render.markdown import TEXT_WIDTH, WIDE_WIDTH, MarkdownStream
from tests.app.render.notation import THEME, markdown_texts, plain, written


def markdown(text: str, width: int = 40, *, newlines: bool = False) -> str:
    return written(MarkdownStream(width, THEME, newlines=newlines).update(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One\ntext\n## Two ##\n", "{buh:One}\n\ntext\n\n{bh:Two}"),
        ("### Three\n\nFour\n===\n", "{bih:Three}\n\n{buh:Four}"),
        ("*slanted*, **strong**, ***both***", "{i:slanted}, {b:strong}, {bi:both}"),
        ("~~gone~~ and `a  b`", "{s:gone} and {c+:a  b}"),
        ('[the *docs*](http://a.b "t")', "{ul:the }{iul:docs}{d: (}{d:http://a.b}{d:)}"),
        ("[http://a.b](http://a.b)", "{ul:http://a.b}"),
        ("<http://auto.io>", "{ul:http://auto.io}"),
        ("![a picture](p.png)", "{d:▣ }{ul:a picture}{d: (p.png)}"),
        ("&lt;b&gt; \\* \\a", "<b> * \\a"),
        ("<b>bold</b>", "<b>bold</b>"),
        ("a\n\n---\n", f"a\n\n{{d:{'─' * 40}}}"),
        ("> quoted *text*\n>\n> > deeper", "{d:▎ quoted }{id:text}\n{d:▎ }\n{d:▎ ▎ deeper}"),
        ("one  \ntwo\\\nthree\nfour", "one\ntwo\nthree four"),
    ],
)
def test_marks_become_styles(text: str, expected: str) -> None:
    assert markdown(text) == expected


def test_lists_keep_their_blank_lines_and_hang_behind_their_bullets() -> None:
    text = "- one\n- two\n  more\n  - nested\n\n    paragraph\n- three\n\n- apart\n"
    assert markdown(text) == (
        "{d:• }one\n"
        "{d:• }two more\n"
        "{d:  ◦ }nested\n"
        "{d:    }\n"
        "{d:    }paragraph\n"
        "{d:• }three\n"
        "\n"
        "{d:• }apart"
    )


def test_items_that_are_tasks_have_boxes() -> None:
    text = "- [x] done **so**\n  [x] no box\n- [ ] to do\n1. [X] both\n- [x]none\n\n[x] no item"
    assert markdown(text) == (
        "{d:• ☑} done {b:so} [x] no box\n{d:• ☐} to do\n\n"
        "{d:1. ☑} both\n\n{d:• }[x]none\n\n[x] no item"
    )


def test_ordered_lists_count_on_from_their_first_number() -> None:
    assert markdown("9. nine\n1. ten\n   1) inner\n") == (
        "{d:9. }nine\n{d:10. }ten\n{d:    1) }inner"
    )


@pytest.mark.parametrize(
    "text", ["```nosuchlanguage\nreturn 1\n```", "    return 1", "```\nreturn 1"]
)
def test_code_without_a_known_language_is_plain(text: str) -> None:
    assert markdown(text) == "{+: return 1" + " " * 31 + "}"


def test_open_fence_is_coloured_line_by_line() -> None:
    assert markdown("```py\nx = 'a'\n", 12) == "{+: x = }{g+:'a'}{+:    }"


def test_tables_align_and_wrap_their_cells() -> None:
    text = "| name | n |\n|:-----|--:|\n| `a` | 1 |\n| much longer | 23 |\n"
    assert markdown(text) == (
        "{b:name}       {d: │ } {b:n}\n"
        "{d:────────────┼───}\n"
        "{c+:a}          {d: │ } 1\n"
        "much longer{d: │ }23"
    ).replace("{d:────────────┼───}", "{d:" + "─" * 12 + "┼" + "─" * 3 + "}")
    assert markdown(text, 11).splitlines()[-2:] == ["much  {d: │ }23", "longer{d: │ }  "]


@pytest.mark.parametrize(
    ("text", "widest"),
    [
        ("word " * 100, TEXT_WIDTH),
        ("```\n" + "x" * 300 + "\n```", WIDE_WIDTH),
        ("```\n" + "x" * 300 + "\nopen", WIDE_WIDTH),
        ("| " + "name " * 40 + "| n |\n|---|---|\n| a | b |", WIDE_WIDTH),
    ],
    ids=["text", "fence", "open fence", "table"],
)
def test_code_and_tables_are_wider_than_text_that_can_be_read(text: str, widest: int) -> None:
    cell = MarkdownStream(200, THEME).update(text)
    assert (TEXT_WIDTH, WIDE_WIDTH) == (84, 120)
    assert widest - 5 < max(line.strip.cell_length for line in cell.lines) <= widest


def test_escape_sequences_are_shown_not_sent() -> None:
    cell = MarkdownStream(40, THEME).update("\x1b[31mred \u202eback &#8238; [a](\x1b]8;;x)")
    assert plain(cell) == ["␛[31mred ⇠back ⇠ a (␛]8;;x)"]


@given(text=markdown_texts, width=st.integers(12, 90))
def test_lines_of_any_text_fit_and_hold_no_control_characters_and_places_lead_back(
    text: str, width: int
) -> None:
    cell = MarkdownStream(width, THEME).update(text)
    places = [cell.place_of(offset) for offset in range(len(text) + 1)]
    assert places == sorted(places)
    for row, column in places:
        assert 0 <= row < cell.line_count
        assert 0 <= column <= cell.line(row).strip.cell_length
    for number, line in enumerate(cell.lines):
        assert line.strip.cell_length == cell_len(line.text) <= width
        assert not any(character < " " or "\x7f" <= character < "\xa0" for character in line.text)
        for run in line.runs:
            assert 0 <= run.offset <= run.offset + run.length <= len(text)
            for offset in range(run.offset, run.offset + (1 if run.atomic else run.length)):
                if run.width:
                    assert cell.place_of(offset) == (number, run.column_of(offset))
                    assert cell.offset_at(number, run.column_of(offset)) == offset


def test_shown_letters_come_from_their_source() -> None:
    text = (
        "# Head *ing*\n\nSome **bold** `code\nspan` [l](u) \\* 字.\n\n- it **em**\n\n  > q\n  > r\n"
        "\n1. a\n   ```py\n   x\ty\n   ```\n\n| h | i |\n|---|---|\n| c\\|d | `e` |\n\n    code\n"
    )
    cell = MarkdownStream(30, THEME).update(text)
    shown = 0
    for line in cell.lines:
        for run in line.runs:
            if run.atomic or not run.width:
                continue
            for offset in range(run.offset, run.offset + run.length):
                column = run.column_of(offset)
                written_there = line.strip.crop(column, column + run.width // run.length).text
                expected = " " if text[offset] == "\n" else text[offset]
                assert written_there in (expected, "•", "▎"), (text[offset], written_there)
                shown += 1
    assert shown >= 60
