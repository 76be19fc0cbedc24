"""Distillation of blocks: what a model is given to sum them up, and which blocks it then names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from antiphon_kernel.layout.arrange import ItemType, LayoutItem
from antiphon_kernel.layout.summary import head_and_tail
from antiphon_kernel.layout.text_forms import block_title
from antiphon_kernel.messages import estimate_text

INSTRUCTIONS: Final = """\
You sum up numbered blocks of a conversation for people and models who go on with the work in
another one. Keep what was found, decided and left open; names, paths, numbers and commands stay as
they are. Write short paragraphs without headings, and nothing else. End each paragraph with the
numbers of the blocks that it rests on, in brackets: [2, 5]"""

_SHORT: Final = 16
"""Tokens up to which a block is not shortened."""

_NUMBERS: Final = re.compile(r"(?<!\w)\[(\d+(?:, *\d+)*)\](?=[\[\]\d, ]*\.?$)", re.MULTILINE)
"""Numbers of blocks at the end of a line."""


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
    titles = [f"[{number}] {block_title(item.block)}:" for number, item in enumerate(items, 1)]
    sizes, left = list(map(estimate_text, texts)), room - estimate_text("\n\n".join(titles))
    most = max(sizes)
    while most > _SHORT and sum(min(size, most) for size in sizes) > left:
        most = most * 9 // 10
    shown = (head_and_tail(text, max(most, _SHORT)) for text in texts)
    return "\n\n".join(f"{title}\n{text}" for title, text in zip(titles, shown, strict=True))


def name_blocks(text: str, names: Sequence[str]) -> str:
    """Return a text with the names of blocks in the place of their numbers, which begin with 1."""
    known = {str(number): name for number, name in enumerate(names, 1)}

    def named(found: re.Match[str]) -> str:
        numbers = re.split(", *", found[1])
        return f"[{', '.join(known.get(one, one) for one in numbers)}]"

    return _NUMBERS.sub(named, text)
