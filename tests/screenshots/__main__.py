"""`make screenshots`: writes screenshots/*.svg.

python -m tests.screenshots [FOLDER]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import pytest
from textual._doc import take_svg_screenshot

from tests.screenshots.shots import GALLERY, SceneApp

FOLDER = Path(__file__).parents[2] / "screenshots"


def take_all(folder: Path) -> None:
    """Let the app find no settings, and no place where somebody was before, and keep none."""
    folder.mkdir(exist_ok=True)
    for name, shot in GALLERY.items():
        with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
            for one in ("CONFIG", "STATE"):
                patch.setenv(f"XDG_{one}_HOME", f"{home}/{one}")
            app = SceneApp(shot, Path(home))
            taken = take_svg_screenshot(app, terminal_size=shot.size, run_before=app.play)
        (folder / f"{name}.svg").write_text(taken)


def main() -> None:
    for name in [one for one in os.environ if one.startswith("TEXTUAL_") or one == "NO_COLOR"]:
        del os.environ[name]
    os.environ["TZ"] = "UTC"
    time.tzset()
    take_all(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)


if __name__ == "__main__":
    main()
