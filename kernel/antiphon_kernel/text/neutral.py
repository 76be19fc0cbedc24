"""Making text harmless for a terminal without changing where anything in it is.

Text of models, tools and peers may hold escape sequences, direction overrides and invisible
characters. Each such code point is replaced by one visible code point, so that offsets into the
neutralised text are offsets into the stored one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_KEPT_CONTROLS = "\n\t"
_UNKNOWN = "\ufffd"
_LEFT_TO_RIGHT = "\u21e2"
_RIGHT_TO_LEFT = "\u21e0"
_DIRECTION_END = "\u21e1"
_INVISIBLE = "\u2423"


def _stand_ins() -> Iterator[tuple[Iterable[int], str]]:
    """Ranges of dangerous code points and what stands for each of them on screen."""
    yield range(0x80, 0xA0), _UNKNOWN
    yield range(0xD800, 0xE000), _UNKNOWN
    yield (0xFFFE, 0xFFFF), _UNKNOWN
    yield (0x85,), "\u2424"
    yield (0x2028,), "\u21b5"
    yield (0x2029,), "\u00b6"
    yield (0x200E, 0x202A, 0x202D, 0x2066), _LEFT_TO_RIGHT
    yield (0x200F, 0x061C, 0x202B, 0x202E, 0x2067), _RIGHT_TO_LEFT
    yield (0x202C, 0x2068, 0x2069), _DIRECTION_END
    yield (0xAD, 0x180E, 0x200B, 0xFEFF), _INVISIBLE
    yield range(0x2060, 0x2066), _INVISIBLE
    yield range(0x206A, 0x2070), _INVISIBLE
    yield range(0xFFF9, 0xFFFC), _INVISIBLE
    # Tag characters can carry a whole hidden message inside what looks like one flag.
    yield range(0xE0000, 0xE0080), _INVISIBLE


def _table() -> dict[int, str]:
    table = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in _KEPT_CONTROLS}
    table[0x7F] = "\u2421"
    for codes, stand_in in _stand_ins():
        table.update(dict.fromkeys(codes, stand_in))
    return table


_TABLE = _table()
_DANGEROUS = re.compile("[" + "".join(re.escape(chr(code)) for code in sorted(_TABLE)) + "]")


def neutralise(text: str) -> str:
    """`text` with every dangerous code point replaced by one visible one; same length.

    Newlines, tabs, joiners (emoji, Persian) and variation selectors are kept.
    """
    return text.translate(_TABLE) if _DANGEROUS.search(text) else text
