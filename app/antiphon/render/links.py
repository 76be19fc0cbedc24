"""Addresses that a terminal may open: links of its own (OSC 8), and only harmless ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from antiphon.render.lines import StyleSpan

LONGEST: Final = 2_000
"""Characters of an address; terminals know no links that are much longer."""

_ASCII: Final = "".join(map(chr, range(0x21, 0x7F)))
_ADDRESS: Final = re.compile(
    r"(?:https?://[a-z0-9.-]+(?::[0-9]{1,5})?(?:[/?#][!-~]*)?|mailto:[!-~]+)", re.IGNORECASE
)
_BARE: Final = re.compile(r"(?<![\w/:.-])(?:https?://|mailto:)[^\s<>\"`*\\|{}^]{1,2001}", re.I)
_ENTITY: Final = re.compile(r"&#?\w+;")
_CLOSING: Final = {")": "(", "]": "["}
_PUNCTUATION: Final = ".,:;!?'_~"


def link_style(address: str) -> Style | None:
    """Return the style that makes text a link to an address; None if it may be no link.

    Only http, https and mailto; no names and passwords before a host, and no host in another
    script than the Latin one, which could look like a different host. An address is written in
    ASCII, so that nothing in it ends the sequence that carries it.
    """
    is_plain = address.isprintable() and "\\" not in address and not _ENTITY.search(address)
    if len(address) > LONGEST or not is_plain:
        return None
    written = quote(address, safe=_ASCII)
    if len(written) > LONGEST or not _ADDRESS.fullmatch(written):
        return None
    return Style(link=written)


def bare_addresses(text: str) -> Sequence[StyleSpan]:
    """Return the addresses that stand in a text as they are, without the punctuation behind."""
    if "://" not in text and "mailto:" not in text.lower():
        return ()
    addresses: list[StyleSpan] = []
    for found in _BARE.finditer(text):
        address = found[0]
        if len(address) > LONGEST:
            continue
        if entity := _ENTITY.search(address):
            address = address[: entity.start()]
        while address:  # without what ends the sentence around it
            last, opening = address[-1], _CLOSING.get(address[-1])
            is_closing = opening is not None and address.count(last) > address.count(opening)
            if not is_closing and last not in _PUNCTUATION:
                break
            address = address[:-1]
        style = link_style(address)
        if style is not None:
            addresses.append(StyleSpan(found.start(), found.start() + len(address), style))
    return addresses


class WithoutLinks(LineFilter):
    """Takes the links out of rows, for terminals that do not know them."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        del background
        if not any(style is not None and style.link for _, style, _ in segments):
            return segments
        return [
            Segment(text, style.update_link(None) if style and style.link else style, control)
            for text, style, control in segments
        ]
