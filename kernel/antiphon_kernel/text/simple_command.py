"""Simple shell commands: lines whose words every shell reads alike, and patterns for them.

A line is one command and nothing else if all of it is on a list of what is known to be harmless:
ASCII letters and digits, `_ @ % + = : , . / ^ -`, single spaces or more between words, any visible
text between single quotes, and the same harmless characters and spaces between double quotes. So
there are no substitutions, lists, pipes, redirections, globs, escapes, comments or line ends in it.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from dataclasses import dataclass
from typing import Final

_PLAIN: Final = r"[A-Za-z0-9_@%+=:,./^-]"
_WORD: Final = rf"""(?:{_PLAIN}|'[^']*'|"(?:{_PLAIN}|[ ])*")+"""
_SIMPLE: Final = re.compile(rf"{_WORD}(?: +{_WORD})*")
_FIRST: Final = re.compile(r"[A-Za-z0-9_@%+:,./^-]+")
"""The name of a program: a word with `=` would set a variable."""

REST: Final = "*"
"""The last word of a pattern that any further words, or none, may follow."""


def command_words(line: str) -> tuple[str, ...] | None:
    """Return the words of a simple command; None if the line is, or may be, anything else."""
    if _SIMPLE.fullmatch(line) is None:
        return None
    if any(one != " " and unicodedata.category(one)[0] in "CZ" for one in line):
        return None
    words = tuple(shlex.split(line, posix=True))
    return words if _FIRST.fullmatch(words[0]) else None


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """A pattern for simple commands: their words in full, or their first words and `*`."""

    words: tuple[str, ...]
    is_open: bool
    """Whether further words may follow."""

    @classmethod
    def parse(cls, text: str) -> CommandPattern:
        """Read a pattern such as `git log *`.

        Raises:
            ValueError: if it is not one simple command, with at most a last word `*`.
        """
        stated, is_open = text, False
        if text.endswith(f" {REST}"):
            stated, is_open = text[: -len(REST)].rstrip(" "), True
        words = command_words(stated)
        if words is None:
            raise ValueError(
                f"a pattern is one command without any of the shell's special characters, such as"
                f" `git status`, and `{REST}` as its last word for any further words, such as"
                f" `git log {REST}`"
            )
        return cls(words, is_open)

    def matches(self, line: str) -> bool:
        """Return whether a line is a simple command of this pattern."""
        words = command_words(line)
        if words is None or words[: len(self.words)] != self.words:
            return False
        return self.is_open or len(words) == len(self.words)
