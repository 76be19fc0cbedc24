"""The whole screen, as a picture. `pytest --snapshot-update` accepts a new one; look at it."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from antiphon.themes import bundled_themes_folder
from tests.app.opened import Opened
from tests.screenshots.plays import (
    Play,
    above,
    asked,
    blaming,
    editing,
    finding,
    navigating,
    opening,
    picture,
    scrubbing,
    streaming,
)
from tests.waiting import until


class SvgPicture(SingleFileSnapshotExtension):
    """One SVG file a picture."""

    _write_mode = WriteMode.TEXT
    file_extension = "svg"


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=lambda size: f"{size[0]}")
async def test_model_streams(size: tuple[int, int], snapshot: SnapshotAssertion) -> None:
    assert await picture(size, streaming) == snapshot(extension_class=SvgPicture)


@pytest.mark.parametrize(
    "play", [above, blaming, scrubbing, finding], ids=lambda play: play.__name__
)
async def test_person_looks_at_a_streamed_text(play: Play, snapshot: SnapshotAssertion) -> None:
    assert await picture((80, 24), play) == snapshot(extension_class=SvgPicture)


async def test_context_is_empty(snapshot: SnapshotAssertion) -> None:
    taken = await picture((80, 24), opening, label="notes")
    assert taken == snapshot(extension_class=SvgPicture)


async def test_model_asks(snapshot: SnapshotAssertion) -> None:
    assert await asked((80, 24)) == snapshot(extension_class=SvgPicture)


async def test_person_edits_in_the_light_theme(snapshot: SnapshotAssertion) -> None:
    taken = await picture((80, 24), editing, theme="antiphon-light")
    assert taken == snapshot(extension_class=SvgPicture)


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in bundled_themes_folder().glob("*.toml"))
)
async def test_cell_is_focused_in_every_theme(name: str, snapshot: SnapshotAssertion) -> None:
    taken = await picture((80, 24), navigating, theme=name)
    assert taken == snapshot(extension_class=SvgPicture)


async def test_theme_change_redraws_everything(there: Opened) -> None:
    before = there.app.export_screenshot()
    there.app.theme = "antiphon-light"
    light = there.app.current_theme.background
    assert light is not None
    await until(lambda: light.lower() in there.app.export_screenshot().lower(), "light")
    dark = "#14171d"
    assert dark in before
    await until(lambda: dark not in there.app.export_screenshot(), "nothing dark is left")
