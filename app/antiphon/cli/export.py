"""Contexts as text, and as what shows how they came to be: replays, casts, pictures and pages."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from itertools import chain
from typing import Final

import click

from antiphon.cli.errors import KernelCommand
from antiphon.cli.kernel_option import KernelTarget, kernel_options
from antiphon.cli.opening import MAX_PAUSE, SPEED
from antiphon.cli.shell_completion import complete_context
from antiphon.cli.signals import run
from antiphon_kernel.text.sanitize import escape_json, sanitize
from antiphon_kernel.types.constants import DEFAULT_CONTEXT

_CONTENT: Final = ("jsonl", "markdown", "messages")
"""Formats of what is there now, which the kernel writes."""


def _read_size(_: click.Context, __: click.Parameter, value: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{2,3})x(\d{1,3})", value)
    if found is None:
        raise click.BadParameter(f"{value!r} is no size: columns and rows, such as 80x24")
    return int(found[1]), int(found[2])


SIZE: Final = click.option(
    "--size",
    metavar="COLSxROWS",
    default="80x24",
    show_default=True,
    callback=_read_size,
    help="Of the terminal that is shown.",
)


@click.command("export", cls=KernelCommand)
@click.argument("context", required=False, shell_complete=complete_context)
@click.option(
    "--format",
    "format_",
    type=click.Choice(
        [*_CONTENT, "replay", "recording", "cast", "cast-v2", "svg", "gif", "mp4", "html"]
    ),
    default="jsonl",
    show_default=True,
    help="Lines of JSON that can be imported again, Markdown to be read, the conversation as JSON"
    " for other tools; or how all of it came to be: replay is for antiphon replay, recording for"
    " antiphon demo --play, cast for asciinema, cast-v2 for its versions before 3, the others are"
    " pictures and a page.",
)
@click.option(
    "--shape",
    type=click.Choice(["openai", "anthropic"]),
    help="Whose messages they are, with --format messages.  [default: openai]",
)
@click.option(
    "--static", is_flag=True, help="With --format html, the document as one page to be read."
)
@click.option(
    "--redact",
    multiple=True,
    metavar="PATTERN",
    help="Black out what matches this regular expression within a line; may be given several"
    " times.",
)
@SIZE
@click.option(
    "--theme", metavar="NAME", default="antiphon-dark", show_default=True, help="Its colours."
)
@SPEED
@MAX_PAUSE
@kernel_options
def export(
    context: str | None,
    format_: str,
    shape: str | None,
    static: bool,
    redact: tuple[str, ...],
    size: tuple[int, int],
    theme: str,
    speed: float,
    max_pause: float,
    kernel: KernelTarget,
) -> None:
    """Print the whole content of CONTEXT (id or label; by default `default`), however large it is.

    Lines of JSON end with one that says how many blocks there are: what has been broken off cannot
    be imported.

    With --format messages, the messages that models read are printed as one JSON object, images and
    documents in them as data; `antiphon import --format messages` takes it.

    What shows how a context came to be has nothing of blocks that are excluded at the end, of
    drafts that are not sent, or of what --redact matches. gif and mp4 are made by agg and ffmpeg.
    """
    from antiphon.export.converters import check_converters
    from antiphon_kernel.client.transfers import export_context

    if shape is not None and format_ != "messages":
        raise click.UsageError("--shape goes with --format messages")
    if static and format_ != "html":
        raise click.UsageError("--static goes with --format html")
    if redact and format_ in _CONTENT:
        raise click.UsageError(f"--redact goes with formats of a replay, not with {format_}")
    if format_ in ("gif", "mp4") and sys.stdout.isatty():
        raise click.UsageError(f"{format_} is no text: write it to a file, with > FILE")
    asked = format_ if format_ in _CONTENT else "replay"
    params = {"context": context or DEFAULT_CONTEXT, "format": asked, "redact": redact}
    params |= {"shape": shape} if shape else {}
    try:
        check_converters(format_)
        pieces = export_context(kernel.find()(), params)
        if format_ != asked:
            made = "static" if static else format_
            pieces = iter([_made_of_replay(pieces, made, size, theme, speed, max_pause)])
        if sys.stdout.isatty():
            neutral = sanitize if format_ in ("markdown", "svg", "html") else escape_json
            pieces = (neutral(piece.decode()).encode() for piece in pieces)
        sys.stdout.buffer.writelines(pieces)
    finally:
        sys.stdout.flush()


def _made_of_replay(
    pieces: Iterable[bytes],
    format_: str,
    size: tuple[int, int],
    theme: str,
    speed: float,
    max_pause: float,
) -> bytes:
    from antiphon.export.cast import as_version_2, write_cast
    from antiphon.export.converters import convert
    from antiphon.export.frames import replay_frames
    from antiphon.export.html_page import write_player_page
    from antiphon.export.recording import recording_of
    from antiphon.export.static_page import static_page
    from antiphon.export.svg import write_svg
    from antiphon.replay.replay import Replay

    replay = Replay.read(chain.from_iterable(map(bytes.splitlines, pieces)), max_pause=max_pause)
    if format_ == "static":
        return static_page(replay).encode()
    if format_ == "recording":
        return recording_of(replay).encode()
    os.environ.pop("NO_COLOR", None)  # says something of this terminal, not of that one
    frames = run(lambda: replay_frames(replay, size=size, theme=theme, speed=speed))
    if format_ == "svg":
        return write_svg(frames, size).encode()
    marks = [(round(one.at_ms / speed), one.title) for one in replay.marks]
    cast = write_cast(frames, size, replay.label, marks)
    if format_ == "html":
        return write_player_page(cast).encode()
    if format_ == "cast-v2":
        return as_version_2(cast).encode()
    return cast.encode() if format_ == "cast" else convert(cast, format_)
