"""Making text harmless for a terminal without changing where anything in it is.

Text of models, tools and peers may hold escape sequences, direction overrides and invisible
characters. Each such code point is replaced by one visible code point, so that offsets into the
neutralised text are offsets into the stored one.

Invisible are the code points with the Unicode property Default_Ignorable_Code_Point and the
format controls that have no glyph. A few of them belong to ordinary text and are kept, one at a
time, directly behind what they apply to: joiners between two pictures or behind a letter of a
script that uses them, variation selectors behind what has variants, the tags of the three flags
that consist of tags. Anywhere else they can only hide something.
"""

from __future__ import annotations

import re
from functools import cache

_UNKNOWN = "\ufffd"
_LEFT_TO_RIGHT = "\u21e2"
_RIGHT_TO_LEFT = "\u21e0"
_DIRECTION_END = "\u21e1"
_INVISIBLE = "\u2423"

PICTURES = "\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
"""Ranges of a character class: what emoji sequences are joined from."""

_IDEOGRAPHS = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
_MONGOLIAN = "\u1820-\u18aa"
# Scripts in which letters join or form clusters: Arabic to Myanmar, Philippine to Vedic, Khmer,
# further Indic scripts, Arabic presentation forms; without the invisible characters among them.
_JOINING_LETTERS = (
    "\u0610-\u061a\u061d-\u109f\u1700-\u17b3\u17b6-\u17dd\u1820-\u18aa\u1900-\u1cff"
    "\ua800-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001e95f"
)
_WITH_VARIANTS = (
    f"{PICTURES}{_IDEOGRAPHS}{_MONGOLIAN}#*0-9\xa9\xae\u203c\u2049\u2122\u2139\u2200-\u22ff"
    "\u3001\u3002\u3030\u303d\u3297\u3299\u1000-\u109f\ua840-\ua877\uff01\uff0c\uff0e\uff1a\uff1b"
    "\uff1f\U00010ac0-\U00010aff"
)
_FLAGS = tuple(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
"""England, Scotland and Wales: the flags that fonts have."""


_INVISIBLE_RANGES = (
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\ud800-\udfff\ufffe\uffff"
_KEPT_SOMEWHERE = "\u034f\u180b-\u180f\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef"

_SUSPICIOUS = re.compile(f"[{_CONTROLS}{_INVISIBLE_RANGES}]")
_STAND_INS = {chr(code): chr(0x2400 + code) for code in range(0x20)} | {
    **dict.fromkeys((chr(code) for code in range(0x80, 0xA0)), _UNKNOWN),
    **dict.fromkeys("\ufffe\uffff", _UNKNOWN),
    **dict.fromkeys("\u200e\u202a\u202d\u2066", _LEFT_TO_RIGHT),
    **dict.fromkeys("\u200f\u061c\u202b\u202e\u2067", _RIGHT_TO_LEFT),
    **dict.fromkeys("\u202c\u2068\u2069", _DIRECTION_END),
    "\x7f": "\u2421",
    "\x85": "\u2424",
    "\u2028": "\u21b5",
    "\u2029": "\xb6",
}
"""The visible code points shown for those that are neither surrogates nor just invisible."""


@cache
def _replaced_or_flag() -> re.Pattern[str]:
    """The pattern of replaced code points; group 1 is a flag, which is kept."""
    return re.compile(
        f"({'|'.join(_FLAGS)})|(?![{_KEPT_SOMEWHERE}])[{_CONTROLS}{_INVISIBLE_RANGES}]"
        f"|(?<![{_JOINING_LETTERS}])(?:\u200c"
        f"|(?<![{PICTURES}])(?<![{PICTURES}]\ufe0f)\u200d|\u200d(?![{PICTURES}]))"
        "|(?<![\u0591-\u05c7])\u034f"
        f"|(?<![{_MONGOLIAN}])[\u180b-\u180f]"
        f"|(?<![{_WITH_VARIANTS}])[\ufe00-\ufe0f]"
        f"|(?<![{_IDEOGRAPHS}])[\U000e0100-\U000e01ef]"
    )


def _stand_in(found: re.Match[str]) -> str:
    one = found[0]
    return found[1] or _STAND_INS.get(one, _UNKNOWN if "\ud800" <= one <= "\udfff" else _INVISIBLE)


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def sanitize(text: str) -> str:
    """`text` with every dangerous code point replaced by one visible one; same length.

    Newlines and tabs are kept, and what is invisible where ordinary text needs it.
    """
    return _replaced_or_flag().sub(_stand_in, text) if _SUSPICIOUS.search(text) else text


def escape_json(text: str) -> str:
    """JSON with every dangerous code point in its strings escaped: it means the same.

    What `sanitize` keeps is escaped too, so that it keeps all of the result however it is cut.
    """
    return _SUSPICIOUS.sub(_escape, text)
