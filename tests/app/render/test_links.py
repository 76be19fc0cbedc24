"""Links of the terminal in Markdown: which text is one, and where it leads."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip

from antiphon.render.links import LONGEST, WithoutLinks, bare_addresses, link_style
from antiphon.render.markdown import MarkdownStream
from tests.app.render.notation import THEME, markdown_texts


def linked(text: str, width: int = 60) -> list[tuple[str, str]]:
    """Text of each piece that is a link, and its address."""
    return [
        (segment.text, segment.style.link)
        for line in MarkdownStream(width, THEME).update(text).lines
        for segment in line.strip
        if segment.style is not None and segment.style.link
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[docs](http://a.b/c)", [("docs", "http://a.b/c"), ("http://a.b/c", "http://a.b/c")]),
        ("<https://a.b>", [("https://a.b", "https://a.b")]),
        ("<amy@a.b>", [("amy@a.b", "mailto:amy@a.b")]),
        ("see https://a.b/c_d_e, then", [("https://a.b/c_d_e", "https://a.b/c_d_e")]),
        ("(https://a.b/x_(y)).", [("https://a.b/x_(y)", "https://a.b/x_(y)")]),
        ("mailto:amy@a.b!", [("mailto:amy@a.b", "mailto:amy@a.b")]),
        ("https://a.b/\u00e9", [("https://a.b/\u00e9", "https://a.b/%C3%A9")]),
        ("`https://a.b`", []),
    ],
)
def test_link_leads_where_the_text_says(text: str, found: list[tuple[str, str]]) -> None:
    joined: list[tuple[str, str]] = []
    for shown, address in linked(text):
        if joined and joined[-1][1] == address and address.startswith(joined[-1][0] + shown):
            joined[-1] = joined[-1][0] + shown, address
        else:
            joined.append((shown, address))
    assert joined == found


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "ssh://a.b",
        "ftp://a.b",
        "http:a.b",
        "https://bank.example@evil.example/",
        "https://b\u0430nk.example/",
        "https://a.b/\x1b\\\x1b]0;x\x07",
        "https://a.b/\u202egnp.exe",
        "https://a.b/&#64;",
        "https://a.b/" + "x" * LONGEST,
    ],
)
def test_address_that_is_not_harmless_is_no_link(address: str) -> None:
    assert link_style(address) is None


def test_label_that_names_another_address_is_followed_by_where_it_leads() -> None:
    text = "[https://bank.example](https://evil.example)"
    lines = MarkdownStream(60, THEME).update(text).lines
    assert lines[0].text == "https://bank.example (https://evil.example)"
    assert {address for _, address in linked(text)} == {"https://evil.example"}


@given(st.text("ahtps:/.@\\\x1b\x07\x9c\u202e;]()&#1 \n") | markdown_texts)
def test_every_link_is_plain_ascii_with_a_known_scheme(text: str) -> None:
    for _, address in linked(f"{text} https://a.b/{text} [x](https://a.b/{text})"):
        assert re.fullmatch(r"(?:https?://|mailto:)[!-~]+", address, re.IGNORECASE)
        assert len(address) <= LONGEST


def test_many_brackets_behind_an_address_are_cut_in_bounded_steps() -> None:
    assert not bare_addresses("https://a.b" + ")" * 1_000_000)
    (found,) = bare_addresses("https://a.b" + ")" * 1_900)
    assert found.end == len("https://a.b")


def test_row_of_a_link_carries_its_address_unless_the_terminal_knows_none() -> None:
    style = link_style("https://a.b")
    assert style is not None
    row = [Segment("before "), Segment("docs", Style(bold=True) + style)]

    def written(segments: list[Segment]) -> str:
        return "".join(
            Strip.render_style(one.style or Style(), one.text, ColorSystem.TRUECOLOR)
            for one in segments
        )

    assert re.search(r"\x1b\]8;id=[^;]*;https://a\.b\x1b\\", written(row))
    without = WithoutLinks().apply(row, Color(0, 0, 0))
    assert "\x1b]8" not in written(without)
    assert [one.text for one in without] == [one.text for one in row]
    assert without[1].style == Style(bold=True)
