"""Pictures: of whole screens as SVG, and of cells as text with its styles, line by line.

`pytest --snapshot-update` accepts what differs. Look at it before: in `snapshot_report.html`, and
for cells in what `python -m tests.screenshots.cells FOLDER` writes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from textual.app import App
from textual.strip import Strip

from antiphon.textual_patches.screens import terminal_rows
from tests.app.opened import Opened
from tests.app.rows import styled_text
from tests.screenshots.cells import SHOTS, SIZES, Shots, pictures
from tests.screenshots.shots import SCREENS, SceneApp
from tests.waiting import until

OTHER_THEMES: Final = ("antiphon-light", "high-contrast", "monochrome", "terminal")
"""Of each sort one, beside the dark one of all other pictures."""


class TextPicture(SingleFileSnapshotExtension):
    """One text file a test."""

    _write_mode = WriteMode.TEXT
    _file_extension = "txt"


@pytest.fixture(autouse=True)
def frequent_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the scroll bar follow the cells soon: every picture waits for it."""
    monkeypatch.setattr("antiphon.widgets.block_list.block_list.MAP_SECONDS", 0.1)


@pytest.fixture
def stored(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot(extension_class=TextPicture)


def text(app: App[Any]) -> str:
    return styled_text(terminal_rows(app))


@pytest.mark.parametrize("shots", SHOTS, ids=lambda shots: shots.__name__)
async def test_cells_of_all_kinds_and_states(shots: Shots, stored: SnapshotAssertion) -> None:
    taken = [f"{name}\n{text(app)}" async for name, app in pictures(shots, SIZES[0])]
    assert "\n\n".join(taken) == stored


@pytest.mark.parametrize("shots", SHOTS, ids=lambda shots: shots.__name__)
async def test_cells_of_all_kinds_and_states_in_themes_of_each_sort(
    shots: Shots, stored: SnapshotAssertion
) -> None:
    by_name = defaultdict[str, list[list[Strip]]](list)
    for theme in OTHER_THEMES:
        async for name, app in pictures(shots, SIZES[1], theme, last="by author"):
            by_name[name].append(terminal_rows(app))
    texts = [f"{name}\n{styled_text(*screens)}" for name, screens in by_name.items()]
    assert "\n\n".join((", ".join(OTHER_THEMES), *texts)) == stored


@pytest.mark.parametrize("name", SCREENS)
def test_screen_with_a_fixed_scene_looks_as_stored(
    name: str, tmp_path: Path, snap_compare: Callable[..., bool]
) -> None:
    app = SceneApp(SCREENS[name], tmp_path)
    assert snap_compare(app, terminal_size=SCREENS[name].size, run_before=app.play)


async def test_theme_change_redraws_everything(there: Opened) -> None:
    before = there.app.export_screenshot()
    there.app.theme = "antiphon-light"
    light = there.app.current_theme.background
    assert light is not None
    await until(lambda: light.lower() in there.app.export_screenshot().lower(), "light")
    dark = "#14171d"
    assert dark in before
    await until(lambda: dark not in there.app.export_screenshot(), "nothing dark is left")
