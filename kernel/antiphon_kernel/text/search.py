r"""Searching a text: queries, and one entry per match, with the lines around it.

A match lies within one line, as with grep: `^` and `$` are the ends of a line, and nothing matches
a newline. That way a line number and two columns say where it is, and a pattern such as `\s*def`
does not begin on the blank line above.

The library of regular expressions stops a match that takes too long or too much memory, but not a
compilation: a counted repeat is unrolled, so that ``a{20000000}`` takes gigabytes. Counts are
limited before it sees the pattern, and verbose patterns, in which a count may be spread over
comments, are refused.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import regex

from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params
from antiphon_kernel.types.quoting import quote

_REPEATS: Final = 100_000
"""Product of the counts of a pattern; each costs some 300 bytes when it is compiled."""

_NESTING: Final = 10
"""Repeated groups inside each other; each doubles the work of compiling what is in it."""

_CHUNK: Final = 16_384
"""Code points that are tried at once."""

_BRIEF: Final = 0.005
"""Seconds that a match may take while nothing else in the process can run."""

_COUNT: Final = re.compile(r"\{([0-9]+)(?:,[0-9]*)?\}")
_STRUCTURE: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?#[^)]*\)|\(|\)[+{]?", re.DOTALL)
"""The groups of a pattern, and what only looks like one."""

_BRACE: Final = re.compile(r"\\[pPN]\{|\\.|\{(?!\d+,?\d*\}|,\d*\})", re.DOTALL)
"""A brace that counts nothing, after what is not to be taken for one."""

_VERBOSE: Final = re.compile(r"(?<!\\)(?:\\\\)*\(\?[a-zA-Z0-9]*x")
_LOOKS_BEYOND: Final = re.compile(
    r"\(\?(?!:|i\)|<?=|P?<[A-Za-z_])|\(\*|\\[AZzGKRX0-9gk]|[*+?}]\+|\{[^}]*<"
)
"""Parts that may match in a line by itself but not in that line between others."""


def line_end(text: str, offset: int) -> int:
    """Return the end of the line of `offset`, without its newline."""
    end = text.find("\n", offset)
    return end if end >= 0 else len(text)


class Query:
    """A regular expression in the syntax of Python's `re`; can be used for one search.

    A match lies within one line, whatever the pattern says. Lines are not tried one by one where
    that comes to the same (each call costs more than most lines): the pattern runs over many lines
    at once, and only the lines that its matches touch are tried.
    """

    def __init__(self, pattern: str, *, seconds: float, line_seconds: float) -> None:
        """Compile a pattern.

        Args:
            seconds: how long all matching with this query may take together.
            line_seconds: how long a single line may take.

        Raises:
            AntiphonError: invalid_regex, with where and why; invalid_params if it is empty or has
                a newline.
        """
        if not pattern or "\n" in pattern:
            found = "has a newline" if pattern else "is empty"
            raise invalid_params(
                f"The query {found}: a match lies within one line, so look for a part of one line.",
                field="query",
            )
        self._pattern = _compile(pattern)
        self._text = pattern
        self._whole = _LOOKS_BEYOND.search(pattern) is None
        self._seconds = self._left = seconds
        self._line_seconds = line_seconds
        self.literals: Sequence[str] = tuple(required_literals(pattern))
        """Strings that every matching line contains exactly; empty if none are known."""

    def lines(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end (without its newline) of each line that may match, in order."""
        last = len(text) - text.endswith("\n")
        start = 0 if text else 1
        while start <= last:
            end = last
            if start + _CHUNK < last:
                newline = text.rfind("\n", start, start + _CHUNK)
                end = newline if newline >= 0 else line_end(text, start + _CHUNK)
            if all(text.find(literal, start, end) >= 0 for literal in self.literals):
                yield from self._lines_between(text, start, end)
            start = end + 1

    def _lines_between(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The lines that may match among whole lines from `start` to `end`."""
        done = start
        if self._whole:
            begun = time.monotonic()
            try:
                for found in self._pattern.finditer(text, start, end, timeout=_BRIEF):
                    if found.end() < done:
                        continue
                    at = max(done, text.rfind("\n", start, found.start()) + 1)
                    last = line_end(text, found.end())
                    while at <= last:
                        stop = line_end(text, at)
                        yield at, stop
                        at = done = stop + 1
                return
            except (TimeoutError, MemoryError):
                pass  # it is quicker, or found out to be slow, line by line
            finally:
                self._left -= time.monotonic() - begun
        while done <= end:
            stop = line_end(text, done)
            yield done, stop
            done = stop + 1

    def matches(self, line: str) -> Iterator[tuple[int, int]]:
        """Start and end of each match in a line, in order, not overlapping.

        Raises:
            AntiphonError: regex_timeout.
        """
        given = 0
        begun = time.monotonic()
        try:
            for found in self._pattern.finditer(line, timeout=_BRIEF):
                given += 1
                yield found.span()
        except (TimeoutError, MemoryError):
            # The rest, while the rest of the process goes on.
            allowed = max(0.001, min(self._line_seconds, self._left))
            try:
                again = self._pattern.finditer(line, timeout=allowed, concurrent=True)
                for found in islice(again, given, None):
                    yield found.span()
            except (TimeoutError, MemoryError) as error:
                raise self._too_long() from error
        finally:
            self._left -= time.monotonic() - begun
        if self._left <= 0:
            raise self._too_long()

    def _too_long(self) -> AntiphonError:
        return AntiphonError(
            ErrorCode.REGEX_TIMEOUT,
            f"The regular expression {quote(self._text)} ran for more than"
            f" {self._line_seconds:g} s on one line or {self._seconds:g} s in all and was stopped:"
            " avoid nested repeats such as (a+)+, or search fewer blocks.",
            seconds=self._seconds,
            line_seconds=self._line_seconds,
        )


def required_literals(pattern: str) -> list[str]:
    """Strings that every match contains; none where that takes more than a look at the pattern."""
    runs = [""]
    at = 0
    while at < len(pattern):
        character, at = pattern[at], at + 1
        if character in "()[]{}|":
            return []
        elif character in "*+?":
            runs[-1] = runs[-1][:-1]
        elif character == "\\":
            escaped, at = pattern[at : at + 1], at + 1
            if not (escaped.isalnum() or escaped == "_"):
                runs[-1] += escaped
                continue
            if escaped not in "dDwWsSbB":
                return []
        elif character not in ".^$":
            runs[-1] += character
            continue
        runs.append("")
    return [run for run in runs if run]


def _compile(pattern: str) -> regex.Pattern[str]:
    inside = [0]  # how many repeated groups are inside each other, for each that is open
    for token in _STRUCTURE.findall(pattern):
        if token == "(":
            inside.append(0)
        elif token[0] == ")" and len(inside) > 1:
            depth = inside.pop() + (len(token) > 1)
            inside[-1] = max(inside[-1], depth)
    nesting = max(inside)
    if nesting > _NESTING:
        raise _invalid(pattern, f"more than {_NESTING} repeated groups are inside each other")
    product = math.prod(max(1, int(count)) for count in _COUNT.findall(pattern))
    if product > 1 and product * 2**nesting > _REPEATS:
        raise _invalid(pattern, f"its counts multiply to more than {_REPEATS}")
    if _VERBOSE.search(pattern):
        raise _invalid(pattern, "verbose patterns, (?x), are not supported")
    # A brace that counts nothing is one to `re`; to the library it would allow errors.
    plain = _BRACE.sub(lambda found: "\\{" if found.group() == "{" else found.group(), pattern)
    try:
        return regex.compile(plain, regex.V0 | regex.MULTILINE, cache_pattern=False)
    except (regex.error, ValueError) as error:
        raise _invalid(pattern, str(error)) from error
    except (RecursionError, OverflowError, MemoryError) as error:
        raise _invalid(pattern, "it is nested too deeply") from error


def _invalid(pattern: str, problem: str) -> AntiphonError:
    return AntiphonError(
        ErrorCode.INVALID_REGEX,
        f"{quote(pattern)} is no regular expression that can be used: {problem}. Correct it:"
        " a backslash before a special character looks for exactly that one.",
        problem=problem,
    )


@dataclass(frozen=True, slots=True)
class Match:
    """Location of a match. Lines count from 0, columns are code points of the line."""

    line: int
    """Number of the line, from 0."""
    match_start: int
    """Column where the match starts, in code points from 0."""
    match_end: int
    """Column where it ends, exclusive."""
    content: str
    """The line, without its newline."""
    before: tuple[str, ...]
    """The lines above it."""
    after: tuple[str, ...]
    """The lines below it."""


@dataclass(frozen=True, slots=True)
class Found:
    """The first matches in a text."""

    matches: tuple[Match, ...]
    truncated: bool
    """Whether there are more than these."""
    size: int
    """Code points of all their lines together."""


def search_text(
    text: str, query: Query, *, max_matches: int, context_lines: int, max_size: int
) -> Found:
    """The first matches of `query` in `text`.

    Args:
        context_lines: how many lines to give above and below each match.
        max_size: stop when the lines to give have more code points than this together; the first
            match is always given.

    Raises:
        AntiphonError: regex_timeout.
    """
    matches: list[Match] = []
    size = line = counted = 0
    for start, end in query.lines(text):
        for column, column_end in query.matches(text[start:end]):
            if len(matches) == max_matches:
                return Found(tuple(matches), True, size)
            line += text.count("\n", counted, start)
            counted = start
            before, after = _above(text, start, context_lines), _below(text, end, context_lines)
            size += end - start + sum(map(len, before)) + sum(map(len, after))
            if size > max_size and matches:
                return Found(tuple(matches), True, size)
            matches.append(Match(line, column, column_end, text[start:end], before, after))
    return Found(tuple(matches), False, size)


def _above(text: str, start: int, count: int) -> tuple[str, ...]:
    """Up to `count` lines that end before `start`, which begins a line."""
    lines: list[str] = []
    while start > 0 and len(lines) < count:
        end = start - 1
        start = text.rfind("\n", 0, end) + 1
        lines.append(text[start:end])
    return tuple(reversed(lines))


def _below(text: str, end: int, count: int) -> tuple[str, ...]:
    """Up to `count` lines that begin after `end`, which ends a line."""
    lines: list[str] = []
    while end + 1 < len(text) and len(lines) < count:
        start = end + 1
        end = line_end(text, start)
        lines.append(text[start:end])
    return tuple(lines)
