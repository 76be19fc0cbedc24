"""The manual page antiphon(1), made of the same commands as `--help`; `make docs` writes it."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap

import click

from antiphon.cli.commands import antiphon
from antiphon_kernel.daemon.cli import main as kernel_program

ROOT = Path(__file__).parents[3]
MAN_PAGE = ROOT / "docs" / "antiphon.1"

RELEASED = "2026-11-27"
"""Day of the version that pyproject.toml names."""


def man_page() -> str:
    about = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    context = click.Context(antiphon, info_name="antiphon", **antiphon.context_settings)
    lines = ['.\\" Written by make docs; do not edit.']
    lines += [f'.TH ANTIPHON 1 {RELEASED} "antiphon {about["version"]}" "User Commands"']
    lines += [".SH NAME", f"antiphon \\- {_escaped(about['description'])}"]
    lines += [".SH SYNOPSIS", _bold(" ".join(_usage(context)))]
    lines += [".SH DESCRIPTION", *_help(antiphon.help), ".SH OPTIONS", *_options(context)]
    lines += [".SH COMMANDS", *_commands(context)]
    return "\n".join(lines) + "\n"


def _commands(context: click.Context) -> Iterator[str]:
    group = context.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(context):
        # The kernel's own program reads the options of this one.
        command = (kernel_program if name == "serve" else group).commands[name]
        own = click.Context(command, info_name=name, parent=context)
        yield from (f".SS {_escaped(' '.join(_usage(own)))}", *_help(command.help))
        yield from _options(own)
        if isinstance(command, click.Group):
            yield from _commands(own)


def _usage(context: click.Context) -> list[str]:
    return [context.command_path, *context.command.collect_usage_pieces(context)]


def _options(context: click.Context) -> Iterator[str]:
    for option in context.command.get_params(context):
        record = option.get_help_record(context) if isinstance(option, click.Option) else None
        if record is not None and ("--help" not in option.opts or context.parent is None):
            yield from (".TP", _bold(record[0]), *_text(record[1]))


def _help(text: str | None) -> Iterator[str]:
    """Yield paragraphs; the lines of one that begins with \\b stay as they are."""
    for number, paragraph in enumerate(inspect.cleandoc(text or "").split("\n\n")):
        if number:
            yield ".PP"
        kept = paragraph.startswith("\b\n")
        lines = map(_escaped, paragraph.split("\n")[1:])
        yield from (".EX", *lines, ".EE") if kept else _text(paragraph)


def _text(text: str) -> Iterator[str]:
    lines = wrap(text, 72, break_long_words=False, break_on_hyphens=False)
    yield re.sub(r"`([^`]+)`", r"\\fB\1\\fR", "\n".join(map(_escaped, lines))) or "\\&"


def _bold(text: str) -> str:
    return f"\\fB{_escaped(text)}\\fR"


def _escaped(text: str) -> str:
    """Return a line that is text: no request of roff, no quote or hyphen that is set otherwise."""
    for character, name in (("\\", "rs"), ("~", "ti"), ("^", "ha"), ("'", "aq")):
        text = text.replace(character, f"\\({name}")
    text = text.replace("-", "\\-")
    return f"\\&{text}" if text.startswith(".") else text
