from __future__ import annotations

import pytest
from textual.binding import Binding

from antiphon.actions import ACTIONS, Action, ActionContext, Mode, Owner, shown_key
from antiphon.keymap import ACTION_NAMED, KeyMap, bindings, check_keys, parse_key
from antiphon.locations import config_folder
from antiphon.render.cell_theme import CellTheme
from antiphon.screens.action_owner import requires_write
from antiphon.screens.cell_list import CellList
from antiphon.screens.conversation_frame import ConversationFrame
from antiphon.screens.document_page import DocumentPage
from antiphon.screens.message_composer import MessageComposer
from antiphon.screens.modals import help_rows
from antiphon.screens.replay_frame import ReplayFrame
from antiphon.settings import SETTINGS_FILE
from antiphon.widgets.sidebar import Sidebar
from antiphon.widgets.status import FindBar, HintBar
from tests.app.opened import World, opened
from tests.app.render.notation import bundled_theme
from tests.waiting import until


def test_named_actions_are_written_as_their_keys() -> None:
    keymap = KeyMap({"undo": ("ctrl+g",), "redo": ()})
    text = "<key:undo> or <key:redo>, <key:nothing> and <b>"
    assert keymap.name_keys(text) == "Ctrl+G or redo, <key:nothing> and <b>"


WIDGETS = (
    ConversationFrame,
    DocumentPage,
    CellList,
    MessageComposer,
    FindBar,
    ReplayFrame,
    Sidebar,
)
OWNERS = {one.__name__: one for one in WIDGETS}


def method_of(action: Action) -> object:
    return getattr(OWNERS[action.owner], f"action_{action.name}", None)


def all_bindings() -> list[Binding]:
    return [one for owner in Owner for one in bindings(owner)]


def test_every_action_has_a_name_of_its_own_and_a_method_of_its_owner() -> None:
    names = [one.name for one in ACTIONS]
    assert len(names) == len(set(names))
    assert [one.name for one in ACTIONS if not one.typed and method_of(one) is None] == []


def test_actions_that_change_what_others_see_are_guarded_whatever_calls_them() -> None:
    guard = requires_write(lambda owner: None).__code__
    methods = {one.name: method_of(one) for one in ACTIONS}
    guarded = {name for name, one in methods.items() if getattr(one, "__code__", None) is guard}
    assert guarded == {one.name for one in ACTIONS if one.mutates and not one.typed}
    # Textual would call a method with `on` as it was before it was guarded.
    assert not [name for name in guarded if hasattr(methods[name], "_textual_on")]


def test_key_means_one_thing_in_a_mode_and_is_asked_about_first_if_taken_at_times() -> None:
    for mode in Mode:
        here = [one for one in ACTIONS if mode in one.modes]
        keys = [key for one in here if one.takes is None for key in one.keys]
        assert len(keys) == len(set(keys)), mode
        for key in {key for one in here for key in one.keys}:
            sharing = [one.takes is None for one in here if key in one.keys]
            assert sharing == sorted(sharing), (mode, key)


def test_bindings_take_no_alt_no_tmux_key_no_typed_sign_and_no_letter_from_a_text() -> None:
    keys = {one.key for one in all_bindings()}
    assert not {key for key in keys if key in ("ctrl+b", "at") or "alt" in key}
    assert not {one.key for one in all_bindings() if one.priority and len(one.key) == 1}


def test_footer_names_whom_ctrl_c_stops_only_while_somebody_runs() -> None:
    for mode in Mode:
        assert "interrupt" not in {
            one.name for one in KeyMap().footer_actions(ActionContext(mode=mode))
        }
        running = ActionContext(mode=mode, stoppable="aria")
        labels = [running.fill(one.words) for one in KeyMap().footer_actions(running)]
        assert "stop aria" in labels


def test_help_sections_contain_every_action_of_every_mode() -> None:
    sections = dict(KeyMap().help_sections())
    assert list(sections) == ["Anywhere", *Mode, "In a replay"]
    shown = {one for actions in sections.values() for one in actions}
    assert shown == set(ACTIONS)
    for actions in sections.values():
        has_keys = [bool(one.keys) for one in actions]
        assert has_keys == sorted(has_keys, reverse=True), "an action without a key is before one"


def test_palette_names_each_action_once() -> None:
    names = [one.name for one in KeyMap().palette_actions(ActionContext(live=True, focused=True))]
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
        ("shift+left", "Shift+←"),
        ("delete", "Delete"),
        ("number_sign", "#"),
        ("ctrl+backslash", "Ctrl+\\"),
        ("ctrl+f", "Ctrl+F"),
        ("f", "f"),
    ],
)
def test_keys_are_written_for_people(key: str, shown: str) -> None:
    assert shown_key(key) == shown


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("Ctrl+G", "ctrl+g"),
        ("?", "question_mark"),
        ("/", "slash"),
        ("PgUp", "pageup"),
        ("Esc", "escape"),
        ("F5", "f5"),
        ("G", "G"),
        ("ctrl+i", "tab"),
        ("Shift+Ctrl+a", "ctrl+shift+a"),
        ("ctrl++", "ctrl+plus"),
        ("+", "plus"),
        ("question_mark", "question_mark"),
        ("ä", "ä"),
    ],
)
def test_parse_key_takes_keys_as_people_write_them(written: str, key: str) -> None:
    assert parse_key(written) == key


@pytest.mark.parametrize("written", ["", "ctrl+", "hurl+g", "gg", "f99", "\n", "ctrl+nothing"])
def test_parse_key_of_no_key_is_an_error(written: str) -> None:
    with pytest.raises(ValueError, match="there is no key"):
        parse_key(written)


def test_built_in_keys_are_keys() -> None:
    for action in ACTIONS:
        if not action.typed:
            keys = {action.name: action.keys}
            assert check_keys({action.name: list(action.keys)}) == (keys, {})


@pytest.mark.parametrize(
    ("table", "action", "reason"),
    [
        ({"undoo": "f5"}, "undoo", "there is no action 'undoo': `antiphon keys` lists them"),
        ({"undo": "f99"}, "undo", "there is no key 'f99'"),
        ({"undo": 7}, "undo", "has to be a key like"),
        ({"shell": "f5"}, "shell", "typed as text"),
        ({"send": "s"}, "send", "s is typed as text in WRITE"),
        ({"blame": "up"}, "blame", "↑ has its own meaning"),
        ({"undo": "f5", "blame": "f5"}, "blame", "F5 is given to 'undo' already"),
    ],
)
def test_check_keys_names_what_is_wrong(table: dict[str, object], action: str, reason: str) -> None:
    _, problems = check_keys(table)
    assert list(problems) == [action]
    assert reason in problems[action]


def test_key_given_to_an_action_is_taken_from_the_one_that_had_it() -> None:
    chosen, problems = check_keys({"blame": "u"})
    keymap = KeyMap(chosen)
    keys = {one.name: one.keys for one in keymap.actions}
    assert (keys["blame"], keys["undo"], problems) == (("u",), (), {})
    assert keymap.translate("u", Mode.NAVIGATE) == "action.blame"
    assert keymap.translate("b", Mode.NAVIGATE) is None
    assert "`blame` has u" in keymap.explain("b", Mode.NAVIGATE)
    assert keymap.translate("b", Mode.EDIT) == "b"


@pytest.mark.parametrize("chosen", [None, *(one.name for one in ACTIONS if not one.typed)])
def test_keymap_without_choices_or_with_built_in_keys_changes_no_key(chosen: str | None) -> None:
    keymap = KeyMap({} if chosen is None else {chosen: ACTION_NAMED[chosen].keys})
    assert keymap.actions == ACTIONS
    for action in ACTIONS:
        for mode in action.modes:
            assert [keymap.translate(key, mode) for key in action.keys] == list(action.keys)


def test_arrow_keys_and_escape_go_on_to_the_text_area() -> None:
    keymap = KeyMap({"navigate": ("ctrl+g",)})
    assert [keymap.translate(key, Mode.WRITE) for key in ("up", "escape")] == ["up", "escape"]


@pytest.fixture
def own_keys() -> None:
    (config_folder() / SETTINGS_FILE).write_text(
        '[keys]\nblame = ["f5"]\nsend = "Ctrl+S"\nnewline = "enter"\nnothing = "f6"\nhints = "f7"\n'
    )


async def test_own_keys_work_and_are_shown_everywhere(own_keys: None, here: World) -> None:
    async with opened(here, size=(120, 30)) as there:
        hints = there.screen.query_one(HintBar)
        problem = "settings.toml:5: there is no action 'nothing'"
        await until(lambda: problem in (hints.hint or ""), "the problem")
        hints.clear_hint()
        await there.send("one")
        await there.type("two")
        await there.sees("Ctrl+S send")
        assert there.message == "one\ntwo"
        await there.press("ctrl+s")
        await until(lambda: there.message == "", "sent")
        await there.press("f7")
        await there.sees("Hints")
        await there.press("escape", "escape", mode=Mode.NAVIGATE)
        await there.press("f1")
        await there.sees("F7   ")
        await there.press("escape", "b")
        await there.sees("b does nothing here: `blame` has F5 in your settings.")


@pytest.mark.parametrize("width", [38, 78])
def test_help_tells_whole_what_an_action_does_with_its_title_if_it_has_no_key(width: int) -> None:
    theme = CellTheme.from_theme(bundled_theme("antiphon-dark"))
    lines = ["".join(span.text for span in row) for row in help_rows(KeyMap(), width, theme)]
    assert max(map(len, lines)) <= width
    words = " ".join(" ".join(lines).split())
    assert "in the palette Settings and keys: Where the file of" in words
    assert "the one that answers you, or all that are writing." in words
