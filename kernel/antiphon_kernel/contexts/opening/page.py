"""A page of a context: some neighbouring blocks with their texts, to be shown without the rest."""

from __future__ import annotations

from itertools import islice
from typing import Final

from antiphon_kernel.contexts.block_info import BlockInfo, header_values
from antiphon_kernel.contexts.context import Context
from antiphon_kernel.document.rendering import render
from antiphon_kernel.registry import Result
from antiphon_kernel.types.records import Member

PAGE_BLOCKS: Final = 60
"""Blocks of a page: more than a high terminal shows."""

PAGE_CHARACTERS: Final = 200_000
"""Code points of the texts of a page; no text on it is cut."""


class PageBlock(BlockInfo):
    """A block on a page."""

    content: str
    """Its text; of a block with a schema, its content as it is rendered."""


class ContextPage(Result):
    """Neighbouring blocks, and where they stand."""

    context_id: str
    label: str
    context_version: int
    count: int
    """Blocks of the whole context."""
    before: int
    """Blocks in front of the first one here."""
    blocks: list[PageBlock]
    """In document order, with whole texts; fewer than asked for where these are long."""
    members: list[Member]
    """Their authors."""


def has_page(context: Context, around: str) -> bool:
    """Return whether an open context holds a block, and those that a page around it shows."""
    if around not in context.document:
        return False
    shown = context.document.order.index(around) - PAGE_BLOCKS // 2
    return context.holds_last(len(context.document) - shown)


def read_page(context: Context, around: str | None = None) -> ContextPage:
    """Return the last page of an open context, or the one `around` a block; see `has_page`."""
    order = context.document.order
    end = len(order)
    if around is not None:
        end = min(end, order.index(around) + PAGE_BLOCKS // 2)
    first, room, blocks = end, PAGE_CHARACTERS, list[PageBlock]()
    for place in islice(range(end - 1, -1, -1), PAGE_BLOCKS):
        block = order.at(place)
        text = render(context.document, block)
        room -= len(text)
        if room < 0:
            break
        blocks.append(PageBlock(content=text, **header_values(context, block)))
        first = place
    blocks.reverse()
    authors = dict.fromkeys(block.author for block in blocks)
    known = (context.document.member(author) for author in authors)
    return ContextPage(
        context_id=context.id,
        label=context.label,
        context_version=context.seq,
        count=context.block_count,
        before=first + context.block_count - len(order),
        blocks=blocks,
        members=[one for one in known if one is not None],
    )
