"""Distillation of blocks: what a model is given to sum them up, and which blocks it then names.

Without a model, the blocks are quoted in short.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from antiphon_kernel.layout.arrange import ItemType, LayoutItem
from antiphon_kernel.layout.summary import head_and_tail, quote_turns
from antiphon_kernel.layout.text_forms import drift_title, part_title
from antiphon_kernel.messages import estimate_text

INSTRUCTIONS: Final = """\
You sum up numbered blocks of a conversation for people and models who go on with the work in
another one. Keep what was found, decided and left open; names, paths, numbers and commands stay as
they are. Write short paragraphs without headings, and nothing else. End each paragraph with the
numbers of the blocks that it rests on, in brackets: [2, 5]"""

_SHORT: Final = 16
"""Tokens up to which a block is not shortened."""

_NAMED: Final = 12
"""Blocks that a quoted turn names."""

_NUMBERS: Final = re.compile(
    r"(?<!\w)(?P<groups>(?:\[ *\d+(?:[ ,;–-]+\d+)* *\][ ,;]*)+)(?P<end>\.?)[ \t]*$", re.MULTILINE
)
"""Numbers of blocks at the end of a line."""
_RANGE: Final = re.compile(r"(\d+)(?: *[–-] *(\d+))?")


def distilled_items(items: Iterable[LayoutItem]) -> list[LayoutItem]:
    """Return the items that say something to somebody who has not been there."""
    return [
        item
        for item in items
        if item.is_block
        and item.type not in (ItemType.THINKING, ItemType.ASSISTANT_ERROR)
        and (item.block.text.strip() or item.block.is_drift)
    ]


def numbered_text(items: Sequence[LayoutItem], room: int) -> str:
    """Return items by number from 1, the longest shortened until all have room.

    Args:
        room: in tokens.
    """
    texts = [item.block.text.strip() for item in items]
    blocks = enumerate((item.block for item in items), 1)
    titles = [
        f"[{n}] {drift_title(one) if one.is_drift else part_title(one)}:" for n, one in blocks
    ]
    sizes = sorted(map(estimate_text, texts))
    left = room - estimate_text("\n\n".join(titles))
    most = left
    for index, size in enumerate(sizes):
        most = left // (len(sizes) - index)
        if size > most:
            break
        left -= size
        most = size
    shown = (head_and_tail(text, max(most, _SHORT)) for text in texts)
    return "\n\n".join(f"{title}\n{text}" for title, text in zip(titles, shown, strict=True))


def name_blocks(text: str, names: Sequence[str]) -> tuple[str, list[int]]:
    """Return a text with the names of blocks in the place of their numbers, each once.

    Also return the numbers that are none, which are left out.

    Args:
        names: of the blocks, the first of which has the number 1.
    """
    unknown: list[int] = []

    def replaced(found: re.Match[str]) -> str:
        known: dict[str, None] = {}
        for one in _RANGE.finditer(found["groups"]):
            first = last = int(one[1])
            if one[2] is not None and first <= int(one[2]) <= len(names):
                last = int(one[2])
            for number in range(first, last + 1):
                if 1 <= number <= len(names):
                    known[names[number - 1]] = None
                else:
                    unknown.append(number)
        return (f"[{', '.join(known)}]" if known else "") + found["end"]

    named = _NUMBERS.sub(replaced, text)
    return "\n".join(line.rstrip() for line in named.split("\n")), unknown


def quoted_text(items: Sequence[LayoutItem], names: Sequence[str], room: int) -> str:
    """Return the beginnings of what was said, a paragraph a turn with the names of its blocks.

    Args:
        names: of the block of each item.
        room: in tokens.
    """
    name_of = {item.block.id: name for item, name in zip(items, names, strict=True)}
    paragraphs: list[str] = []
    for turn, quoted in quote_turns(items, room):
        named = [name_of[item.block.id] for item in turn if item.type is not ItemType.TOOL_RESULT]
        shown = ", ".join(named[:_NAMED])
        more = len(named) - _NAMED
        paragraphs.append(f"{quoted}\n[{shown}{f' and {more} more' if more > 0 else ''}]")
    return "\n\n".join(paragraphs)
