from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.text.sanitize import escape_json, sanitize

# Default_Ignorable_Code_Point of DerivedCoreProperties.txt, Unicode 15.
IGNORABLE = frozenset(
    code
    for first, last in (
        (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5),
        (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164),
        (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3),
        (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
    )
    for code in range(first, last + 1)
)  # fmt: skip
VISIBLE_FORMATS = {0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6DD, 0x70F, 0x890, 0x891, 0x8E2}
VISIBLE_FORMATS |= {0x110BD, 0x110CD}
"""Format controls with a glyph: number signs and abbreviation marks."""

HIDING = "".join(map(chr, sorted({*IGNORABLE} - {*range(0xE0080, 0xE1000)})))
BASES = "a1#é文字\u0635\u0915\u094d\u1828\U0001f469\u2764\U0001f3fd\U0001f3f4\U0001f680 \n\t"

ORDINARY = [
    "plain\n\ttext",
    "Größe, naïve, cœur, Zażółć gęślą jaźń",
    "e\u0301 o\u0308 a\u0323\u0302",
    "Ελληνικά, ἀρχή",
    "Привет, мир",
    "Հայերեն",
    "שלום עולם",
    "יְרוּשָׁלִַ\u034fם",
    "مرحبا بالعالم",
    "می\u200cخواهم",
    "ܫܠܡܐ",
    "ދިވެހި",
    "हिन्दी क्\u200dष र्\u200dय",
    "বাংলা র\u200c্য",
    "தமிழ்",
    "മലയാളം ന്\u200d",
    "ශ්\u200dරී ලංකා",
    "ภาษาไทย",
    "ພາສາລາວ",
    "བོད་ཡིག",
    "မြန်မာ က\ufe00",
    "ქართული",
    "አማርኛ",
    "ខ្មែរ",
    "ᠮᠣᠩᠭᠣᠯ ᠰᠣ\u180bᠮ ᠠᠷ\u180eᠠ",
    "한국어",
    "中文 日本語 かな カナ 葛\U000e0100飾区",
    "ᏣᎳᎩ",
    "∩\ufe00 0\u0338",
    "👨\u200d👩\u200d👧\u200d👦 👩🏽\u200d⚕\ufe0f",
    "🧑\u200d🤝\u200d🧑 👩\u200d❤\ufe0f\u200d💋\u200d👨",
    "🏳\ufe0f\u200d🌈 🏳\ufe0f\u200d⚧\ufe0f 🏴\u200d☠\ufe0f 🇺🇳 🐻\u200d❄\ufe0f 🙂\u200d↔\ufe0f",
    "1\ufe0f\u20e3 #\ufe0f\u20e3 ©\ufe0f ❤\ufe0e ☺\ufe0f ™\ufe0f",
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
]


@given(st.text(st.characters(codec=None) | st.sampled_from(HIDING + BASES)))
def test_neutralise_any_text_keeps_offsets_and_is_idempotent(text: str) -> None:
    neutral = sanitize(text)
    assert len(neutral) == len(text)
    assert sanitize(neutral) == neutral
    neutral.encode()


@given(st.text(st.sampled_from(HIDING + BASES)))
def test_neutralise_any_text_leaves_no_run_of_invisible_characters(text: str) -> None:
    for flag in ("gbeng", "gbsct", "gbwls"):
        tags = "".join(chr(0xE0000 + ord(letter)) for letter in flag)
        text = text.replace(f"\U0001f3f4{tags}\U000e007f", "flag")
    neutral = sanitize(text)
    for before, after in zip("a" + neutral, neutral, strict=False):
        if ord(after) in IGNORABLE:
            # Only the joiner of two pictures follows something invisible: a picture's selector.
            assert ord(before) not in IGNORABLE or (before, after) == ("\ufe0f", "\u200d")
            assert before not in "a é\n\t"


def test_neutralise_single_character_leaves_no_control_format_or_separator() -> None:
    hidden = ("Cc", "Cf", "Cs", "Zl", "Zp")
    codes = {code for code in range(0x110000) if unicodedata.category(chr(code)) in hidden}
    for code in (codes | IGNORABLE) - VISIBLE_FORMATS - {*b"\n\t"}:
        shown = sanitize(chr(code))
        assert unicodedata.category(shown) not in hidden, hex(code)
        assert ord(shown) not in IGNORABLE, hex(code)


def test_neutralise_ordinary_text_changes_nothing() -> None:
    assert [text for text in ORDINARY if sanitize(text) != text] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", "\u241b[31m"),
        ("a\rb\x00\x7f", "a\u240db\u2400\u2421"),
        ("a\U000e0041\U000e007f", "a␣␣"),
        ("🏴\U000e0067\U000e0061\U000e007f", "🏴␣␣␣"),
        ("a\u200db", "a␣b"),
        ("👩\u200d\u200d👩", "👩␣␣👩"),
        ("👩\u200da", "👩␣a"),
        ("é\ufe0f", "é␣"),
        ("😀\ufe0f\U000e0101\U000e0102", "😀\ufe0f␣␣"),
        ("文\U000e0100\U000e0101", "文\U000e0100␣"),
        ("so\xadft", "so␣ft"),
        ("a\ufff9b\ufffac\ufffb", "a␣b␣c␣"),
        ("\u3164\u115f\u1160\uffa0", "␣␣␣␣"),
        ("a\u2028b\u2029c", "a↵b¶c"),
        ("\x9b\x85\ud800", "\ufffd\u2424\ufffd"),
    ],
)
def test_neutralise_dangerous_characters_makes_each_visible(text: str, shown: str) -> None:
    assert sanitize(text) == shown


@given(st.text(st.characters(codec=None) | st.sampled_from(HIDING + BASES)))
def test_escape_json_any_string_means_the_same_and_is_harmless(text: str) -> None:
    line = escape_json(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(line) == {"text": text}
    assert sanitize(line) == line
    assert not any(ord(one) in IGNORABLE for one in line)
