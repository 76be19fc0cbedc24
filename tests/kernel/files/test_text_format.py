"""Bytes of files as texts: what nobody edits is written as it was read, or it is no text."""

from __future__ import annotations

import codecs
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from antiphon_kernel.files.text_format import Binary, Decoded, TextFormat, decode, encode
from antiphon_kernel.text.splice_diff import common_prefix, common_suffix
from antiphon_kernel.types.errors import ErrorCode
from tests.errors import raises

GERMAN = (
    "Über den Wäldern hängt größer Nebel, und die Vögel können nicht schön singen.\n"
    "Müßiggang ist aller Laster Anfang, sagte der König zu den Männern: „Schöne Grüße“.\n"
)
FRENCH = "Il était une fois, dans un village éloigné, une fille très aimée de sa mère.\n"
RUSSIAN = "Все люди рождаются свободными и равными в своем достоинстве и правах.\n"
JAPANESE = "すべての人間は、生まれながらにして自由であり、尊厳と権利とについて平等である。\n"
CODINGS = {
    "python": ("# -*- coding: latin-1 -*-\n", "iso8859-1"),
    "second line": ("#!/bin/sh\n# coding=cp1252\n", "cp1252"),
    "emacs": ("// -*- mode: C; coding: iso-8859-15-unix -*-\n", "iso8859-15"),
    "vim": ("/* vim: set fileencoding=koi8-r : */\n", "koi8-r"),
    "vim, short": ('" vim: fenc=cp1250\n', "cp1250"),
    "xml": ('<?xml version="1.0" encoding="Shift_JIS"?>\n', "shift_jis"),
    "latin": ("# coding: iso-latin-1-dos\r\n", "iso8859-1"),
}
NOT_CODINGS = {
    "no comment": 'open(name, encoding="cp1252")\n',
    "third line": "#\n#\n# coding: cp1252\n",
    "unknown": "# coding: no-such\n",
    "no text": "# coding: hex\n",
    "escapes": "# coding: unicode_escape\n",
    "more than ascii": "# coding: utf-7\n",
    "not ascii": "# coding: utf-16\n",
}

pieces = st.sampled_from(["a", "b c", "é", "漢", "😀", "\n", "\n", "\r\n", "\r", "\u2028", ""])
raw_texts = st.lists(pieces, max_size=30).map("".join)
encodings = st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-be"])


def bytes_of(text: str, encoding: str) -> bytes:
    mark = codecs.BOM_UTF16_BE if encoding == "utf-16-be" else b""
    return mark + text.encode(encoding)


def decoded(data: bytes) -> Decoded:
    found = decode(data)
    assert isinstance(found, Decoded), found
    return found


@settings(deadline=None)  # the first guess loads a library
@given(st.binary(max_size=200))
@example(b"\xff\xfea")
@example(b"\xff\xfe\x00\xd8")
@example(b"\xed\xa0\x80")
@example(b"# coding: gb18030\n\x84\x31\xa4\x36\xff")
def test_decode_of_any_bytes_is_reversible_or_binary(data: bytes) -> None:
    found = decode(data)
    if isinstance(found, Decoded):
        assert encode(found.text, found.format) == data
        assert "\r" not in found.text and "\0" not in found.text
        found.text.encode()
    else:
        assert found.reason.endswith(".")


@given(raw_texts, encodings)
def test_decode_of_text_keeps_everything(text: str, encoding: str) -> None:
    data = bytes_of(text, encoding)
    found = decoded(data)
    assert found.text == text.replace("\r\n", "\n").replace("\r", "\n")
    assert encode(found.text, found.format) == data


@given(raw_texts, encodings, st.data())
def test_edit_changes_only_its_own_bytes(text: str, encoding: str, data: st.DataObject) -> None:
    old = bytes_of(text, encoding)
    found = decoded(old)
    start = data.draw(st.integers(0, len(found.text)))
    end = data.draw(st.integers(start, min(start + 4, len(found.text))))
    inserted = data.draw(st.text(st.sampled_from("xyé\n"), max_size=4))
    edited = found.text[:start] + inserted + found.text[end:]
    new = encode(edited, found.format, found.text)
    # Of equal lines it is open which one is deleted: what both ends have in common stays.
    kept = common_prefix(found.text, edited)
    head = edited[:kept]
    tail = edited[len(edited) - common_suffix(found.text, edited, kept) :]
    ends = found.format.ends or ""
    before = ends[: head.count("\n")]
    after = ends[len(ends) - tail.count("\n") :]
    assert decoded(new).text == edited
    if ends and "\n\n" in edited:
        return  # beside an empty line, an end may have to change so that it stays one
    assert new.startswith(encode(head, replaced(found.format, before), head))
    assert new.endswith(encode(tail, replaced(found.format, after, bom=False), tail))


def replaced(known: TextFormat, ends: str, *, bom: bool | None = None) -> TextFormat:
    return TextFormat(
        known.encoding,
        known.bom if bom is None else bom,
        known.newline,
        None if known.ends is None else ends,
    )


@pytest.mark.parametrize(
    ("data", "text", "known"),
    [
        (b"", "", TextFormat()),
        (b"a", "a", TextFormat()),
        (b"a\n", "a\n", TextFormat(newline="\n")),
        ("é\r\nb\r\n".encode(), "é\nb\n", TextFormat(newline="\r\n")),
        (b"a\rb", "a\nb", TextFormat(newline="\r")),
        (b"a\r\nb\nc\r\nd\re", "a\nb\nc\nd\ne", TextFormat(newline="\r\n", ends="cncr")),
        (b"a\r\r\nb\r\n", "a\n\nb\n", TextFormat(newline="\r\n", ends="rcc")),
        (codecs.BOM_UTF8, "", TextFormat(bom=True)),
        (codecs.BOM_UTF8 + b"a\n", "a\n", TextFormat(bom=True, newline="\n")),
        (2 * codecs.BOM_UTF8, "\ufeff", TextFormat(bom=True)),
        (codecs.BOM_UTF16_LE, "", TextFormat("utf-16-le", bom=True)),
        ("\ufeff😀\r\n".encode("utf-16-le"), "😀\n", TextFormat("utf-16-le", True, "\r\n")),
        ("\ufeffé\n".encode("utf-16-be"), "é\n", TextFormat("utf-16-be", True, "\n")),
        ("\ufeffa\r".encode("utf-32-le"), "a\n", TextFormat("utf-32-le", True, "\r")),
        ("\ufeffa".encode("utf-32-be"), "a", TextFormat("utf-32-be", bom=True)),
        ("a\u2028b\x0cc".encode(), "a\u2028b\x0cc", TextFormat()),
    ],
)
def test_decode_of_unicode_is_text_and_format(data: bytes, text: str, known: TextFormat) -> None:
    assert decode(data) == Decoded(text, known)
    assert encode(text, known) == data


@pytest.mark.parametrize("name", CODINGS)
def test_coding_line_names_encoding(name: str) -> None:
    line, encoding = CODINGS[name]
    letter = {"koi8-r": "Ж", "shift_jis": "漢"}.get(encoding, "é")
    for written in (line, f"{line}{letter}\n", f"{line}{letter}"):
        found = decoded(written.encode(encoding))
        assert found.format.encoding == encoding
        assert found.text == written.replace("\r\n", "\n")


@pytest.mark.parametrize("name", NOT_CODINGS)
def test_line_that_names_no_usable_encoding_is_passed_over(name: str) -> None:
    data = NOT_CODINGS[name].encode()
    assert decoded(data).format.encoding == "utf-8"
    assert isinstance(decode(data + b"\xe9"), Binary)


def test_utf8_goes_before_another_encoding_in_coding_line() -> None:
    assert decoded("# coding: latin-1\né\n".encode()).format.encoding == "utf-8"


@pytest.mark.parametrize(
    ("text", "written_as", "found_as"),
    [
        (2 * GERMAN, "cp1252", "cp1252"),
        (f"int x;\n{GERMAN}return 0;\n" * 500, "cp1252", "cp1252"),
        (RUSSIAN, "cp1251", "cp1251"),
        (RUSSIAN, "koi8_r", "koi8-r"),
        (RUSSIAN, "cp866", "cp866"),
        (JAPANESE, "shift_jis", "cp932"),
        (f"{'x = 1' * 999}\n{JAPANESE}", "shift_jis", "cp932"),
        (JAPANESE, "euc_jp", "euc_jp"),
    ],
)
def test_long_text_in_encoding_without_doubt_is_decoded(
    text: str, written_as: str, found_as: str
) -> None:
    for ended in (text, text.replace("\n", "\r\n")):
        found = decoded(ended.encode(written_as))
        assert found.text == text
        assert found.format.encoding == found_as


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"a\0b", "Byte 1 is NUL, which is in no text."),
        ("\ufeffa\0".encode("utf-16-le"), "Character 1 is NUL, which is in no text."),
        ("ab漢".encode()[:-1], "Byte 2 is not UTF-8, and no other encoding is certain."),
        ((GERMAN * 9 + "漢").encode()[:-1], "no other encoding is certain."),
        ((JAPANESE * 9).encode()[:-2], "no other encoding is certain."),
        (GERMAN.encode("cp1252"), "no other encoding is certain."),
        ((FRENCH * 9).encode("cp1252"), "no other encoding is certain."),
        (FRENCH.encode("cp850"), "no other encoding is certain."),
        (codecs.BOM_UTF8 + b"a\xff", "Byte 4 cannot be read as utf-8."),
        (codecs.BOM_UTF16_LE + b"a", "Byte 2 cannot be read as utf-16-le."),
        (codecs.BOM_UTF16_LE + b"\x00\xd8", "Byte 2 cannot be read as utf-16-le."),
        (b"# coding: utf-8\n\xe9\n", "Byte 16 cannot be read as utf-8."),
        (b"# coding: cp1252\n\x81\n", "Byte 17 cannot be read as cp1252."),
        (b"# coding: big5\n\xa1\xfe\n", "written again, it would not be the same bytes."),
    ],
)
def test_bytes_that_are_not_certainly_a_text_are_binary(data: bytes, reason: str) -> None:
    found = decode(data)
    assert isinstance(found, Binary), found
    assert found.reason.endswith(reason)


@pytest.mark.parametrize("size", [50, 5_000])
def test_random_bytes_are_binary(size: int) -> None:
    rng = random.Random(size)
    for _ in range(20):
        assert isinstance(decode(bytes(rng.randrange(1, 256) for _ in range(size))), Binary)


def test_encoding_that_is_given_is_used() -> None:
    data = FRENCH.encode("cp1252")
    assert decode(data, "windows-1252") == Decoded(FRENCH, TextFormat("cp1252", newline="\n"))
    assert decode("a\n".encode("utf-16-le"), "utf-16-le") == Decoded(
        "a\n", TextFormat("utf-16-le", newline="\n")
    )
    assert isinstance(decode(data, "utf-8"), Binary)
    assert isinstance(decode(b"a..b", "idna"), Binary)


@pytest.mark.parametrize(
    ("edited", "wanted"),
    [
        ("a\nb\nc\nd", b"a\r\nb\nc\rd"),
        ("a\nX\nc\nd", b"a\r\nX\nc\rd"),
        ("new\na\nb\nc\nd", b"new\na\r\nb\nc\rd"),
        ("a\nnew\nb\nc\nd", b"a\r\nnew\r\nb\nc\rd"),
        ("a\nc\nd", b"a\r\nc\rd"),
        ("a\nbc\nd", b"a\r\nbc\rd"),
        ("a\nb\nc\nd\n", b"a\r\nb\nc\rd\r"),
        ("A\nb\nx\nC\nd", b"A\r\nb\nx\nC\rd"),
        ("a\nb\nc\n\nd\n", b"a\r\nb\nc\r\rd\r"),
        ("a\r\nb\rc\nd", b"a\r\nb\nc\rd"),
        ("", b""),
    ],
)
def test_lines_keep_their_own_ends(edited: str, wanted: bytes) -> None:
    found = decoded(b"a\r\nb\nc\rd")
    known = TextFormat(newline="\n", ends=found.format.ends)
    assert encode(edited, known, found.text) == wanted


def test_ends_around_a_line_that_became_empty_stay_two() -> None:
    found = decoded(b"a\rb\nc\n")
    assert encode("a\n\nc\n", found.format, found.text) == b"a\r\r\nc\n"


def test_encode_with_base_of_other_ends_is_refused() -> None:
    with pytest.raises(ValueError, match="3 line ends for 1 lines"):
        encode("a", TextFormat(newline="\n", ends="ncr"), "a\n")


@pytest.mark.parametrize(
    ("encoding", "character"),
    [("iso8859-1", "€"), ("ascii", "é"), ("utf-8", "\ud800"), ("utf-8", "\0"), ("shift_jis", "¥")],
)
def test_character_that_encoding_lacks_is_refused(encoding: str, character: str) -> None:
    known = TextFormat(encoding, newline="\r\n")
    with raises(ErrorCode.INVALID_PARAMS) as caught:
        encode(f"a\nb\nc{character}", known)
    assert caught.value.details["line"] == 2
    assert repr(character) in caught.value.message and encoding in caught.value.message
