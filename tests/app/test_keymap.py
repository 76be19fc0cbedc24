from __future__ import annotations

import pytest

from antiphon.actions import ACTIONS, ActionContext, Mode, shown_key
from antiphon.keymap import bindings, footer_actions, help_sections, palette_actions, works_in
from antiphon.screens.document_actions import requires_write
from antiphon.screens.document_screen import DocumentScreen


def test_every_action_has_a_name_of_its_own_and_a_method() -> None:
    names = [one.name for one in ACTIONS]
    assert len(names) == len(set(names))
    missing = [
        one.name
        for one in ACTIONS
        if not one.typed and not hasattr(DocumentScreen, f"action_{one.name}")
    ]
    assert missing == []


def test_actions_that_change_what_others_see_are_those_that_require_write() -> None:
    guarded = {
        one.name
        for one in ACTIONS
        if requires_write(lambda screen: None).__code__
        is getattr(getattr(DocumentScreen, f"action_{one.name}", None), "__code__", None)
    }
    assert guarded == {one.name for one in ACTIONS if one.mutates and not one.typed}


@pytest.mark.parametrize("mode", Mode)
def test_key_means_one_thing_in_a_mode(mode: Mode) -> None:
    keys = [key for one in ACTIONS if mode in one.modes for key in one.keys]
    assert len(keys) == len(set(keys))


def test_keymap_uses_no_alt_and_no_tmux_key() -> None:
    assert not {one.key for one in bindings() if one.key == "ctrl+b" or "alt" in one.key}


def test_letters_are_never_taken_from_a_text() -> None:
    assert not {one.key for one in bindings() if one.priority and len(one.key) == 1}


def test_keymap_text_input_has_no_binding() -> None:
    assert "at" not in {one.key for one in bindings()}


def test_key_works_in_the_modes_of_its_action_only() -> None:
    assert works_in("undo", Mode.NAVIGATE) and not works_in("undo", Mode.EDIT)
    assert works_in("undo_edit", Mode.EDIT) and not works_in("undo_edit", Mode.NAVIGATE)


def test_footer_names_only_keys_that_work_now() -> None:
    empty = {one.name for one in footer_actions(ActionContext(mode=Mode.WRITE))}
    full = {one.name for one in footer_actions(ActionContext(mode=Mode.WRITE, composing=True))}
    assert "shell" in empty and "send" not in empty
    assert "send" in full and "shell" not in full


def test_footer_names_whom_ctrl_c_stops_only_while_somebody_runs() -> None:
    for mode in Mode:
        assert "interrupt" not in {one.name for one in footer_actions(ActionContext(mode=mode))}
        running = ActionContext(mode=mode, stoppable="aria")
        labels = [one.label(running) for one in footer_actions(running)]
        assert "stop aria" in labels


def test_help_sections_contain_every_action_of_every_mode() -> None:
    sections = dict(help_sections())
    assert list(sections) == ["Anywhere", *Mode]
    shown = {one for actions in sections.values() for one in actions}
    assert shown == set(ACTIONS)


def test_palette_names_each_action_once() -> None:
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
