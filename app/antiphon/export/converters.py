"""Casts as pictures that other programs make of them: GIF by agg, MP4 of that by ffmpeg."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from antiphon.export.cast import as_version_2
from antiphon_kernel.types.errors import invalid_params

_PROGRAMS: Final = {"gif": ("agg",), "mp4": ("agg", "ffmpeg")}

_FILM: Final = ("-pix_fmt", "yuv420p", "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2")
"""Films that are seen everywhere have these colours, and even sides."""


def check_converters(format_: str) -> None:
    """Raise AntiphonError(invalid_params) if a program that makes the format is not installed."""
    missing = [name for name in _PROGRAMS.get(format_, ()) if shutil.which(name) is None]
    if missing:
        raise invalid_params(
            f"{format_} needs {' and '.join(missing)}, which cannot be found here: install"
            " agg from https://docs.asciinema.org/manual/agg/ and ffmpeg from your system's"
            " packages, or choose svg or html, which need neither."
        )


def convert(cast: str, format_: str) -> bytes:
    """Return a cast as GIF or MP4.

    Raises:
        AntiphonError: invalid_params, with what a program said that has failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, gif, mp4 = (Path(folder) / f"replay.{kind}" for kind in ("cast", "gif", "mp4"))
        source.write_text(as_version_2(cast), "utf-8")
        # The cast's own pauses stay as they are.
        _run("agg", "--idle-time-limit", "100000", str(source), str(gif))
        if format_ == "gif":
            return gif.read_bytes()
        _run("ffmpeg", "-loglevel", "error", "-i", str(gif), *_FILM, str(mp4))
        return mp4.read_bytes()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise invalid_params(f"{command[0]} has failed: {done.stderr.strip()}")
