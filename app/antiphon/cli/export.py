"""Contexts as text, and as what shows how they came to be: replays, casts, pictures and pages."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Final

import click

from antiphon.cli.errors import CommandError, call_error
from antiphon.cli.kernel_option import KernelTarget, kernel_options
from antiphon.cli.signals import run
from antiphon_kernel.types.constants import DEFAULT_CONTEXT

STREAM: Final = "-"
"""Standard output."""

_CONTENT: Final = ("jsonl", "markdown", "messages")
"""Formats of what is there now, which the kernel writes."""

_PICTURES: Final = ("cast", "svg", "gif", "mp4", "html")
"""Formats of what the app shows of a replay."""


def read_size(_: click.Context, __: click.Parameter, value: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{2,3})x(\d{1,3})", value)
    if found is None:
        raise click.BadParameter(f"{value!r} is no size: columns and rows, such as 80x24")
    return int(found[1]), int(found[2])


@click.command("export")
@click.argument("context", default=DEFAULT_CONTEXT)
@click.option(
    "--format",
    "format_",
    type=click.Choice([*_CONTENT, "replay", "recording", *_PICTURES]),
    default="jsonl",
    show_default=True,
    help="Lines of JSON that can be imported again, Markdown to be read, the conversation as JSON"
    " for other tools; or how all of it came to be: replay is for antiphon replay, recording for"
    " antiphon demo --play, cast for asciinema, the others are pictures and a page.",
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
    help="Black out what matches this regular expression; may be given several times.",
)
@click.option(
    "--size",
    metavar="COLSxROWS",
    default="80x24",
    show_default=True,
    callback=read_size,
    help="Of the terminal that is shown.",
)
@click.option("--theme", metavar="NAME", help="Its colours.  [default: antiphon-dark]")
@click.option(
    "--speed",
    type=click.FloatRange(0.25, 100),
    default=1.0,
    show_default=True,
    help="How many times as fast as it was.",
)
@click.option(
    "--max-pause",
    type=click.FloatRange(0.1),
    default=2.0,
    show_default=True,
    help="Seconds to which longer pauses are shortened.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    default=STREAM,
    metavar="FILE",
    help="Write to FILE.  [default: standard output]",
)
@kernel_options
def export(
    context: str,
    format_: str,
    shape: str | None,
    static: bool,
    redact: tuple[str, ...],
    size: tuple[int, int],
    theme: str | None,
    speed: float,
    max_pause: float,
    output: str,
    kernel: KernelTarget,
) -> None:
    """Print the whole content of CONTEXT (id or label; by default `default`), however large it is.

    Lines of JSON end with one that says how many blocks there are: what has been broken off cannot
    be imported.

    With --format messages, the messages that models read are printed as one JSON object, images and
    documents in them as data; `antiphon import --format messages` takes it.

    What shows how a context came to be has nothing of blocks that are excluded at the end, of
    drafts that are not sent, or of what --redact matches. gif and mp4 are made by agg and ffmpeg.

    Exit codes: 0 printed, 1 the call failed, 2 wrong arguments, 3 no kernel could be reached or
    started.
    """
    from antiphon.export.converters import ConversionError, check_converters
    from antiphon_kernel.client.transfers import export_context
    from antiphon_kernel.text.sanitize import escape_json, sanitize
    from antiphon_kernel.types.errors import AntiphonError

    if shape is not None and format_ != "messages":
        raise click.UsageError("--shape goes with --format messages")
    if static and format_ != "html":
        raise click.UsageError("--static goes with --format html")
    if redact and format_ in _CONTENT:
        raise click.UsageError(
            f"--redact goes with formats of how a context came to be, not with {format_}"
        )
    if output == STREAM and format_ in ("gif", "mp4"):
        raise click.UsageError(f"{format_} is no text: name a file for it with --output")
    if theme is not None:
        _check_theme(theme)
    params: dict[str, str | tuple[str, ...]] = {"context": context, "format": format_}
    if format_ not in _CONTENT:
        params |= {"format": "replay", "redact": redact}
    if shape:
        params["shape"] = shape
    try:
        check_converters(format_)
        pieces = export_context(kernel.find()(), params)
        if static or format_ == "recording":
            pieces = _read(pieces, static, max_pause)
        elif format_ in _PICTURES:
            pieces = _show(pieces, format_, size, theme, speed, max_pause)
        if output == STREAM and sys.stdout.isatty():
            neutral = sanitize if format_ in ("markdown", "svg", "html") else escape_json
            pieces = (neutral(piece.decode()).encode() for piece in pieces)
        with click.open_file(output, "wb", lazy=True) as target:
            target.writelines(pieces)
    except AntiphonError as error:
        raise call_error(error) from error
    except ConversionError as error:
        raise CommandError(str(error)) from error
    except click.FileError as error:
        raise CommandError(error.format_message()) from error
    finally:
        sys.stdout.flush()


def _check_theme(name: str) -> None:
    from antiphon.locations import config_folder
    from antiphon.themes import bundled_themes_folder, load_themes

    known = load_themes(bundled_themes_folder(), config_folder() / "themes").themes
    if name not in known:
        raise click.UsageError(f"there is no theme {name!r}; known: {', '.join(sorted(known))}")


def _read(pieces: Iterable[bytes], static: bool, max_pause: float) -> Iterator[bytes]:
    """Yield what is made of a replay without the app."""
    from antiphon.export.recording import recording_of
    from antiphon.export.static_page import static_page
    from antiphon.replay.replay import Replay

    replay = Replay.read(_lines(pieces), max_pause=max_pause)
    yield (static_page if static else recording_of)(replay).encode()


def _show(
    pieces: Iterable[bytes],
    format_: str,
    size: tuple[int, int],
    theme: str | None,
    speed: float,
    max_pause: float,
) -> Iterator[bytes]:
    """Yield what the app shows."""
    from antiphon.export.cast import write_cast
    from antiphon.export.converters import convert
    from antiphon.export.frames import replay_frames
    from antiphon.export.html_page import write_player_page
    from antiphon.export.svg import write_svg
    from antiphon.replay.replay import Replay

    replay = Replay.read(_lines(pieces), max_pause=max_pause)
    os.environ.pop("NO_COLOR", None)  # says something of this terminal, not of that one
    frames = run(lambda: replay_frames(replay, size=size, theme=theme, speed=speed))
    if format_ == "svg":
        yield write_svg(frames, size).encode()
        return
    marks = [(round(one.at_ms / speed), one.title) for one in replay.marks]
    cast = write_cast(frames, size, replay.label, marks)
    if format_ == "cast":
        yield cast.encode()
    elif format_ == "html":
        yield write_player_page(cast).encode()
    else:
        yield convert(cast, format_)


def _lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    return (line for piece in pieces for line in piece.splitlines())
