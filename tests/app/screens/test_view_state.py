"""View state that several windows of a person share."""

from __future__ import annotations

from pathlib import Path

from antiphon.options import AppOptions
from antiphon.screens.view_state import ViewState, ViewStateStore


def test_idle_window_leaves_the_context_that_another_was_used_in(tmp_path: Path) -> None:
    idle, used = (ViewStateStore(tmp_path, AppOptions(data=tmp_path), print) for _ in range(2))
    idle.write("first", ViewState())
    used.write("second", ViewState())
    idle.write("first", ViewState())
    assert used.last_context() == "second"


def test_context_of_the_window_that_is_left_last_is_remembered(tmp_path: Path) -> None:
    one, other = (ViewStateStore(tmp_path, AppOptions(data=tmp_path), print) for _ in range(2))
    one.write("first", ViewState())
    other.write("second", ViewState(), is_left=True)
    one.write("first", ViewState(), is_left=True)
    assert other.last_context() == "first"
