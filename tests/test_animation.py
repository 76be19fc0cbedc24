"""The animated picture of a recorded terminal."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.screenshots.__main__ import FOLDER
from tests.screenshots.animation import animation
from tests.screenshots.recording import Cast

LARGEST = 1_000_000


@pytest.fixture
def cast() -> Cast:
    changes = ((0.0, "still\r\nfirst"), (0.5, "\rother"), (1.0, "\r\x1b[31mfirst"))
    return Cast(10, 3, changes)


def test_animation_moves_only_rows_that_change(cast: Cast) -> None:
    drawn = animation(cast)
    words = ["".join(one.itertext()) for one in ElementTree.fromstring(drawn).iter() if one.text]
    assert [words.count(one) for one in ("still", "other", "first")] == [1, 1, 2]
    assert drawn.count("@keyframes") == 1
    assert drawn.count("translateY") == 3


def test_cast_reads_what_it_has_written(cast: Cast) -> None:
    assert Cast.loads(cast.dumps()) == cast


def test_animation_of_the_demo_is_that_of_its_recording() -> None:
    drawn = (FOLDER / "demo.svg").read_text()
    assert drawn == animation(Cast.loads((FOLDER / "demo.cast").read_text()))
    assert len(drawn) < LARGEST
