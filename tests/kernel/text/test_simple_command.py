"""Patterns for shell commands: what they match runs as it is read, and nothing else matches."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.text.simple_command import CommandPattern, command_words

LOG: Final = CommandPattern.parse("git log *")

SPECIAL: Final = frozenset('|&;()<>$`\\"*?[]{}~#!\t\n\r\v\f\0')
"""Characters that a shell may read as something else than themselves, outside single quotes."""


@pytest.mark.parametrize(
    "line",
    [
        "git log",
        "git log --oneline -n 5",
        "git  log",
        "git log --format=%h",
        "git log HEAD^",
        "git log --grep 'a; rm -rf x'",
        "git log --grep '$(x) `y` | z > w & (v)'",
        'git log --grep "two words"',
        "git log --author='Bo Sørensen'",
        "'git' log",
        "git log ''",
    ],
)
def test_pattern_matches_a_simple_command_that_begins_with_its_words(line: str) -> None:
    assert LOG.matches(line)


SMUGGLED: Final = [
    *(f"git log {one} x" for one in sorted(SPECIAL)),
    *(f"git log{one}" for one in sorted(SPECIAL - {'"'})),
    *(f"{one}git log" for one in sorted(SPECIAL - {'"'})),
    "git log && rm -rf x",
    "git log 2>x",
    'git log "$(rm -rf x)"',
    'git log "`rm -rf x`"',
    "git log $'\\n'rm",
    "X=1 git log",
    "PAGER='rm -rf x' git log",
    "git\\\nlog",
    "git\u00a0log",
    "git\u2003log",
    "git\u3000log",
    "git\tlog",
    " git log",
    "git log ",
    "g\u0456t log",
    "git l\u043eg",
    "\uff47\uff49\uff54 log",
    "git log\u037e rm -rf x",
    "git log \uff1b rm",
    "git log \u202erm",
    "git log 'a\u2028b'",
    "git log 'a\nb'",
    "git log 'a\x1bb'",
    "git log \x07",
    "git logs",
    "gitlog",
    "git",
    "git Log",
    "GIT log",
    "git -c core.pager=x log",
    "./git log",
    "git 'log; rm'",
    "git log 'unclosed",
    'git log "unclosed',
    'git log "a\'b"; rm',
    "time git log",
    "",
    " ",
]


def test_pattern_does_not_match_what_a_shell_reads_otherwise() -> None:
    assert [line for line in SMUGGLED if LOG.matches(line)] == []


def test_pattern_without_a_star_matches_its_words_only() -> None:
    pattern = CommandPattern.parse("git status")
    assert pattern.matches("git status")
    assert not pattern.matches("git status --short")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        " *",
        "git*",
        "git * log",
        "git log; *",
        "git $x *",
        "X=1 git *",
        "git log\n*",
        "~/x",
    ],
)
def test_pattern_that_is_no_simple_command_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a pattern is one command"):
        CommandPattern.parse(text)


PARTS: Final = st.sampled_from(
    [
        *("git", "log", "status", "--oneline", "a=b", "'a b'", '"a b"', "''", "x'y'z"),
        *("é", "і", "~", "rm", "*", "$(x)", "${x}", "`x`", "\\", "'", '"', "!"),
    ]
)
GLUE: Final = st.sampled_from(
    [" ", " ", " ", " ", "  ", "", "\t", "\n", ";", "&&", "|", ">", "<(", ")", "\u00a0", "\\\n"]
)
LINES: Final = st.lists(st.tuples(PARTS, GLUE), max_size=8).map(
    lambda parts: "".join(part + glue for part, glue in parts)
) | st.text(max_size=30)
PATTERNS: Final = [CommandPattern.parse(one) for one in ("git log *", "git *", "git", "git status")]


def _outside_single_quotes(line: str) -> str:
    return "".join(line.split("'")[::2])


@given(LINES | LINES.map(lambda line: f"git log {line}"))
def test_line_that_a_pattern_matches_has_its_words_and_nothing_special(line: str) -> None:
    for pattern in PATTERNS:
        if not pattern.matches(line):
            continue
        words = tuple(shlex.split(line, posix=True))
        assert words[: len(pattern.words)] == pattern.words
        assert pattern.is_open or words == pattern.words
        assert line.isprintable()
        outside = _outside_single_quotes(line)
        assert outside.isascii()
        assert not (SPECIAL - {'"'}) & set(outside)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash runs commands where it is there")
def test_words_of_simple_commands_are_those_that_bash_reads() -> None:
    lines = [
        "git log -n 5",
        "git log 'a; b' c^ %d",
        'git "a b"',
        "git '' x'y z'=w",
        "git a=b,c:d@e",
    ]
    for line in lines:
        script = f"git() {{ printf '%s\\0' git \"$@\"; }}; {line}"
        shown = subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout
        assert tuple(shown.decode().split("\0")[:-1]) == command_words(line)
