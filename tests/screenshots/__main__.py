"""`make screenshots`: writes screenshots/*.svg.

python -m tests.screenshots [FOLDER]
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.screenshots.plays import Play, editing, picture, streaming

FOLDER = Path(__file__).parents[2] / "screenshots"


async def take(
    name: str, size: tuple[int, int], play: Play, folder: Path, theme: str | None = None
) -> None:
    (folder / f"{name}.svg").write_text(await picture(size, play, theme=theme))


async def take_all(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    await take("demo-80x24", (80, 24), editing, folder)
    await take("streaming-80x24", (80, 24), streaming, folder)
    await take("sidebar-120x40", (120, 40), streaming, folder)
    await take("light-120x40", (120, 40), editing, folder, theme="antiphon-light")


def main() -> None:
    for name in [one for one in os.environ if one.startswith("TEXTUAL_") or one == "NO_COLOR"]:
        del os.environ[name]
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    asyncio.run(take_all(folder))


if __name__ == "__main__":
    main()
