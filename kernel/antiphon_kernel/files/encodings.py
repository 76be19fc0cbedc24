"""The encoding of a file that does not begin with a byte order mark and is not UTF-8."""

from __future__ import annotations

import re
from typing import Final

_CODING: Final = re.compile(
    # A comment, or the bar of Emacs; "encoding" and "fileencoding" end in the word, too.
    rb"""[ \t\f]*(?:\#|//|/?\*|;|%|--|"|<!--|<\?xml|.*-\*-)"""
    rb""".*?(?:coding|\bfenc)[ \t]*[:=][ \t]*["']?([-\w.]+)"""
)
_CODING_LINES: Final = 2_000
"""Bytes in which coding lines are looked for."""

_ASCII: Final = bytes(range(32, 127)).decode().replace("\\", r"\x41\u0041+AGE-~{<:~}")
"""Text that stays the same only in an encoding that has all of ASCII, and no escapes in it."""

_KNOWN: Final = (
    *("cp1252", "iso8859_15", "cp1250", "iso8859_2", "cp1251", "koi8_r", "iso8859_5", "cp1253"),
    *("cp1254", "cp1255", "cp1256", "cp850", "cp866", "mac_roman", "mac_cyrillic"),
    *("cp932", "euc_jp", "gb18030", "big5", "cp949"),
)
"""Encodings that are guessed; of those that read a text the same, the first."""

_SAMPLE: Final = 16_384
"""Bytes that a guess looks at, in lines that are not ASCII."""

_ENOUGH: Final = 32
"""Bytes outside of ASCII that a guess needs."""

_MESS: Final = 0.1
"""Part of a text that may look wrong in a reading."""

_CLEARER_MESS, _CLEARER_LANGUAGE = 0.04, 0.15
"""How far all other readings must be behind, in either, for a guess to be certain."""


def named_encoding(data: bytes) -> str | None:
    """Return the encoding that one of the first two lines names, if it reads ASCII as such."""
    for line in re.split(rb"\r\n|\r|\n", data[:_CODING_LINES])[:2]:
        if found := _CODING.match(line):
            name = re.sub("-(unix|dos|mac)$", "", found[1].decode().lower())
            name = name.removeprefix("iso-") if name.startswith("iso-latin") else name
            try:
                if _ASCII.encode().decode(name) == _ASCII:
                    return name
            except (LookupError, UnicodeError):
                continue
    return None


def guessed_encoding(data: bytes) -> str | None:
    """Return the only encoding in which what is not ASCII is plausible, if there is one."""
    from charset_normalizer import from_bytes

    lines = b"\n".join(line for line in data.splitlines() if not line.isascii())[:_SAMPLE]
    sample = lines if len(lines) < _SAMPLE else lines.rpartition(b"\n")[0]
    damaged = sample.decode("utf-8", "replace")
    wrong = damaged.count("\ufffd")
    right = sum(not character.isascii() for character in damaged) - wrong
    if right >= wrong or len(sample.translate(None, bytes(range(128)))) < _ENOUGH:
        return None
    best, *others = from_bytes(
        sample,
        steps=1,
        chunk_size=_SAMPLE,
        cp_isolation=[*_KNOWN],
        preemptive_behaviour=False,
        enable_fallback=False,
    ) or (None,)
    if best is None or best.chaos > _MESS:
        return None
    language = max(best.coherence - _CLEARER_LANGUAGE, 0.0)
    if any(
        other.chaos - best.chaos < _CLEARER_MESS
        and not (best.coherence and other.coherence <= language)
        for other in others
    ):
        return None
    return min(best.could_be_from_charset, key=_KNOWN.index)
