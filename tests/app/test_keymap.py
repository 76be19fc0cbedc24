from __future__ import annotations

import pytest

from antiphon.action import shown_key
from antiphon.action_context import ActionContext
from antiphon.actions import ACTIONS
from antiphon.keymap import action_for, bound_keys, footer_actions, help_sections, palette_actions
from antiphon.modes import Mode
from antiphon.screens.document_actions import DocumentActions


def test_every_action_can_be_performed() -> None:
    missing = [
        one.name for one in ACTIONS if not one.typed and not hasattr(DocumentActions, one.name)
    ]
    assert missing == []


@pytest.mark.parametrize("mode", Mode)
def test_a_key_means_one_thing_in_a_mode(mode: Mode) -> None:
    keys = [key for one in ACTIONS if mode in one.modes for key in one.keys]
    assert len(keys) == len(set(keys))


def test_no_key_belongs_to_tmux_or_needs_alt() -> None:
    assert not {key for key in bound_keys() if key == "ctrl+b" or "alt" in key}


def test_letters_are_never_taken_from_a_text() -> None:
    assert not {key for key, priority in bound_keys().items() if priority and len(key) == 1}


def test_what_is_typed_is_no_binding() -> None:
    assert action_for(Mode.WRITE, "at") is None


def test_the_footer_names_only_keys_that_work_now() -> None:
    empty = {one.name for one in footer_actions(ActionContext(mode=Mode.WRITE))}
    full = {one.name for one in footer_actions(ActionContext(mode=Mode.WRITE, composing=True))}
    assert "navigate" in empty and "send" not in empty
    assert "send" in full and "navigate" not in full


def test_the_footer_names_whom_ctrl_c_stops_only_while_somebody_runs() -> None:
    for mode in Mode:
        assert "interrupt" not in {one.name for one in footer_actions(ActionContext(mode=mode))}
        running = ActionContext(mode=mode, stoppable="aria")
        labels = [one.label(running) for one in footer_actions(running)]
        assert "stop aria" in labels


def test_help_has_every_action_of_every_mode() -> None:
    sections = dict(help_sections())
    assert list(sections) == ["Anywhere", *Mode]
    shown = {one for actions in sections.values() for one in actions}
    assert shown == set(ACTIONS)


def test_the_palette_names_each_action_once() -> None:
    names = [one.name for one in palette_actions(ActionContext(live=True, focused=True))]
    assert len(names) == len(set(names))
    assert "undo" in names and "send" not in names


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("ctrl+end", "Ctrl+End"),
        ("f1", "F1"),
        ("g", "g"),
        ("G", "G"),
        ("question_mark", "?"),
        ("up", "↑"),
        ("ctrl+up", "Ctrl+↑"),
    ],
)
def test_keys_are_written_for_people(key: str, shown: str) -> None:
    assert shown_key(key) == shown
