"""Colours of code by pygments, which is imported when there is code to colour."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

from rich.style import Style

from antiphon.render.cell_theme import CodeTheme

if TYPE_CHECKING:
    from pygments.lexer import Lexer  # type: ignore[import-untyped]

CodeRole = Literal["plain", "keyword", "name", "string", "number", "comment", "removed"]

LONGEST_COLOURED: Final = 60_000
"""Code points of one piece of code beyond which it is not coloured: it would take too long."""


@functools.lru_cache(maxsize=32)
def _lexer(language: str) -> Lexer | None:
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        return get_lexer_by_name(language)
    except ClassNotFound:
        return None


@functools.lru_cache(maxsize=32)
def language_of_path(path: str) -> str:
    """The language a file's name suggests; empty if none."""
    from pygments.lexers import find_lexer_class_for_filename

    found = find_lexer_class_for_filename(path)
    return found.aliases[0] if found and found.aliases else ""


@functools.cache
def _role(token_type: object) -> CodeRole:
    from pygments.token import Token  # type: ignore[import-untyped]

    roles: list[tuple[object, CodeRole]] = [
        (Token.Comment, "comment"),
        (Token.Keyword.Constant, "number"),
        (Token.Keyword, "keyword"),
        (Token.Operator.Word, "keyword"),
        (Token.Literal.String, "string"),
        (Token.Literal.Number, "number"),
        (Token.Name.Function, "name"),
        (Token.Name.Class, "name"),
        (Token.Name.Decorator, "name"),
        (Token.Name.Tag, "keyword"),
        (Token.Name.Attribute, "name"),
        (Token.Generic.Heading, "keyword"),
        (Token.Generic.Subheading, "keyword"),
        (Token.Generic.Inserted, "string"),
        (Token.Generic.Deleted, "removed"),
        (Token.Generic.Prompt, "comment"),
        (Token.Generic.Output, "comment"),
    ]
    for kind, role in roles:
        if token_type in kind:  # type: ignore[operator]
            return role
    return "plain"


@functools.lru_cache(maxsize=128)
def code_roles(code: str, language: str) -> tuple[tuple[str, CodeRole], ...] | None:
    """The code in parts by role, which joined are the code; None if it stays plain."""
    if not language or not code or len(code) > LONGEST_COLOURED:
        return None
    lexer = _lexer(language)
    if lexer is None:
        return None
    parts: list[tuple[str, CodeRole]] = []
    for _, token_type, value in lexer.get_tokens_unprocessed(code):
        role = _role(token_type)
        if parts and parts[-1][1] == role:
            parts[-1] = (parts[-1][0] + value, role)
        elif value:
            parts.append((value, role))
    if "".join(value for value, _ in parts) != code:
        return None
    return tuple(parts)


def highlighted_lines(code: str, language: str, theme: CodeTheme) -> list[list[tuple[str, Style]]]:
    r"""Each line of the code as styled parts; a final ``\n`` makes no line."""
    roles = code_roles(code, language)
    if roles is None:
        lines = [[(line, theme.plain)] if line else [] for line in code.split("\n")]
    else:
        lines = list(_by_line(roles, theme))
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


def _by_line(
    roles: tuple[tuple[str, CodeRole], ...], theme: CodeTheme
) -> Iterator[list[tuple[str, Style]]]:
    line: list[tuple[str, Style]] = []
    for text, role in roles:
        style: Style = getattr(theme, role)
        first, *others = text.split("\n")
        if first:
            line.append((first, style))
        for part in others:
            yield line
            line = [(part, style)] if part else []
    yield line
