"""`make screenshots`: writes screenshots/*.svg.

python -m tests.screenshots [FOLDER]
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.screenshots.plays import (
    Play,
    above,
    asked,
    beside,
    blaming,
    editing,
    finding,
    managing,
    opening,
    picture,
    scrubbing,
    streaming,
)

FOLDER = Path(__file__).parents[2] / "screenshots"


SMALL, MIDDLE, LARGE = (80, 24), (120, 40), (200, 60)


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture of the gallery."""

    size: tuple[int, int]
    play: Play
    theme: str | None = None
    label: str | None = None
    """Of a context that is made for it."""


GALLERY: Final[Mapping[str, Shot]] = {
    "demo-80x24": Shot(SMALL, editing),
    "first-80x24": Shot(SMALL, opening, label="notes"),
    "both-80x24": Shot(SMALL, above),
    "blame-80x24": Shot(SMALL, blaming),
    "history-80x24": Shot(SMALL, scrubbing),
    "find-80x24": Shot(SMALL, finding),
    "people-80x24": Shot(SMALL, managing),
    "monochrome-80x24": Shot(SMALL, editing, theme="monochrome"),
    "sidebar-120x40": Shot(MIDDLE, streaming),
    "light-120x40": Shot(MIDDLE, editing, theme="antiphon-light"),
    "wide-200x60": Shot(LARGE, above),
    "file-170x40": Shot((170, 40), beside),
}


async def take_all(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, shot in GALLERY.items():
        with nobodys_folders():
            drawn = await picture(shot.size, shot.play, theme=shot.theme, label=shot.label)
        (folder / f"{name}.svg").write_text(drawn)
    with nobodys_folders():
        (folder / "permission-80x24.svg").write_text(await asked(SMALL))


@contextlib.contextmanager
def nobodys_folders() -> Iterator[None]:
    """Let the app find no settings, and no place where somebody was before, and keep none."""
    with tempfile.TemporaryDirectory() as home:
        for name in ("CONFIG", "STATE"):
            os.environ[f"XDG_{name}_HOME"] = f"{home}/{name}"
        yield


def main() -> None:
    for name in [one for one in os.environ if one.startswith("TEXTUAL_") or one == "NO_COLOR"]:
        del os.environ[name]
    os.environ["TZ"] = "UTC"
    time.tzset()
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    asyncio.run(take_all(folder))


if __name__ == "__main__":
    main()
