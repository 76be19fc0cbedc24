"""Markdown tokens with their place in the source.

Imports markdown-it: import this module only when there is Markdown to draw. Link reference
definitions are off, so that a block never depends on text further down; HTML is text.
"""

from __future__ import annotations

import functools
import itertools
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType

from antiphon.render.display import sanitize_for_display
from antiphon.render.markdown_blocks import AT, DEEPEST, TARGET


class PlacedState(StateInline):
    """Notes for every token where the parser stood when the token's source began."""

    def __init__(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> None:
        super().__init__(src, md, env, tokens)
        self._text_at: int | None = None

    def append_pending(self, text: str) -> None:
        if self._text_at is None:
            self._text_at = self.pos
        super().append_pending(text)

    def pushPending(self) -> Token:  # noqa: N802
        token = super().pushPending()
        token.meta[AT] = self.pos if self._text_at is None else self._text_at
        self._text_at = None
        return token

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        token = super().push(ttype, tag, nesting)
        token.meta[AT] = self.pos
        self._text_at = None
        return token


class PlacedInline(ParserInline):
    """The inline parser over `PlacedState`."""

    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: list[Token]) -> list[Token]:
        state = PlacedState(src, md, env, tokens)
        self.tokenize(state)
        for before, token in itertools.pairwise(state.tokens):
            # A run of emphasis marks becomes several tokens at one place: put them side by side.
            if before.type == token.type == "text":
                token.meta[AT] = before.meta[AT] + len(before.content)
        _note_targets(src, state.tokens)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


@functools.cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False})
    parser.inline = PlacedInline()
    parser.configure("commonmark", {"html": False, "maxNesting": DEEPEST})
    parser.enable(["table", "strikethrough"])
    parser.disable(["reference", "fragments_join", "text_join", "html_block", "html_inline"])
    return parser


def parse(source: str) -> list[Token]:
    """The flat tokens of a displayable Markdown text; `map` counts lines, ends are exclusive."""
    return _parser().parse(source)


def parse_inline(source: str) -> list[Token]:
    parser = _parser()
    return parser.inline.parse(sanitize_for_display(source), parser, {}, [])


def _note_targets(content: str, tokens: list[Token]) -> None:
    """Note the start and end of the addresses in inline links and images."""
    opening: Token | None = None
    for token in tokens:
        if token.type == "link_open":
            opening = token
        if token.type == "image":
            at = token.meta[AT] + len("![](") + len(token.content)
        elif token.type == "link_close" and token.markup != "autolink":
            at = token.meta[AT] + len("](")
        else:
            continue
        while at < len(content) and content[at] in " \t\n":
            at += 1
        found = _parser().helpers.parseLinkDestination(content, at, len(content))
        if found.ok and found.pos > at:
            brackets = content[at] == "<"
            token.meta[TARGET] = at + brackets, found.pos - brackets
            if opening is not None and token.type == "link_close":
                opening.meta[TARGET] = token.meta[TARGET]
