from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.text.neutral import neutralise

KEPT = {"\n", "\t", "\u200c", "\u200d"}


@given(st.text(st.characters(codec=None)))
def test_neutralising_keeps_every_offset_and_is_stable(text: str) -> None:
    neutral = neutralise(text)
    assert len(neutral) == len(text)
    assert neutralise(neutral) == neutral
    neutral.encode()


def test_no_control_format_or_separator_character_is_left() -> None:
    for code in range(0x110000):
        shown = neutralise(chr(code))
        category = unicodedata.category(shown)
        assert category not in ("Cc", "Cs", "Zl", "Zp") or shown in KEPT, hex(code)
        assert unicodedata.bidirectional(shown) not in (
            "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
        ), hex(code)  # fmt: skip


@pytest.mark.parametrize("text", ["plain\n\ttext", "\U0001f469\u200d\U0001f680", "שלום", "é\ufe0f"])
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert neutralise(text) == text


def test_dangerous_characters_become_visible() -> None:
    assert neutralise("\x1b[31m") == "\u241b[31m"
    assert neutralise("a\rb\x00\x7f") == "a\u240db\u2400\u2421"
    hidden = "\x9b\x85\u2028\u202e\u200b\ufeff\U000e0041\ud800"
    assert all(shown.isprintable() for shown in neutralise(hidden))
