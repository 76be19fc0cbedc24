"""Looks of each kind of block."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.render.cell_renderer import CellRenderer
from antiphon.render.text_lines import on_ground
from antiphon.render.view import CellView, permission_question
from antiphon_kernel.text.patch import unified_diff
from antiphon_kernel.types.drift import DriftOrigin
from antiphon_kernel.types.enums import BlockKind, Role, Status
from tests.app.render.notation import THEME, picture, plain, render_cell, view


def lines(kind: BlockKind | str, text: str, width: int = 40, **fields: Any) -> list[str]:
    return plain(render_cell(view(kind, text, **fields), width, THEME))


def shell(text: str, width: int = 40, **fields: Any) -> list[str]:
    return lines("tool_call", text, width, tool_kind="shell", **fields)


def test_model_writes_markdown_and_a_person_too_with_newlines() -> None:
    assert lines("text", "a *b*\nc") == ["a b c"]
    assert lines("text", "a *b*\nc", role="user") == ["a b", "c"]


@pytest.mark.parametrize("kind", ["thinking", "tool_result"])
def test_open_text_that_a_fold_shortens_ends_with_a_line_that_folds(kind: str) -> None:
    cell = render_cell(view(kind, "1\n2\n3\n4\n5\n6\n"), 40, THEME)
    assert plain(cell)[-2:] == ["  6", "  ▾ fold"]
    assert cell.line(cell.line_count - 1).is_fold
    assert lines(kind, "1\n2\n3\n4\n5\n")[-1] == "  5"


def test_text_that_was_unfinished_when_it_was_copied_says_so() -> None:
    interrupted: dict[str, Any] = {"status": "error", "stop_reason": "interrupted"}
    copied = lines("text", "so", **interrupted, source_block="b")
    assert copied == ["so", "■ unfinished when copied"]


def test_folded_text_has_the_place_of_the_fold() -> None:
    assert lines("thinking", "", collapsed=True, status="running") == ["▸ thinking…"]
    cell = render_cell(view("thinking", "first\nsecond", collapsed=True), 40, THEME)
    assert {cell.place_of(offset)[0] for offset in range(13)} == {0}
    assert cell.offset_at(0, 3) == 0


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"status": "running"}, "⠋"),
        ({"status": "running", "ticks": 12}, "⠹"),
        ({"status": "pending"}, "pending"),
        ({"exit_code": 0}, "✓"),
        ({"exit_code": 0, "duration_ms": 8}, "✓ 0.1 s"),
        ({"duration_ms": 340}, "✓ 0.3 s"),
        ({"duration_ms": 41_300}, "✓ 41 s"),
        ({"duration_ms": 200_000}, "✓ 3 min 20 s"),
        ({"duration_ms": 7_500_000}, "✓ 2 h 5 min"),
        ({"exit_code": 2, "duration_ms": 900}, "✗ 2"),
        ({"status": "error", "exit_code": 127, "duration_ms": 1_900}, "✗ 127 · 1.9 s"),
        ({"is_error": True}, "✗ failed"),
        ({"status": "error", "stopped_by": "amy"}, "■ stopped by amy"),
        ({"status": "error", "stop_reason": "interrupted"}, "■ interrupted"),
        ({"status": "error", "stop_reason": "timeout"}, "✗ timeout"),
        ({"status": "error"}, "✗ failed"),
    ],
)
def test_tool_call_cell_shows_outcome_at_right(fields: dict[str, Any], label: str) -> None:
    (line,) = shell("git log -3", **fields)
    assert line == "$ git log -3" + label.rjust(28)


def test_long_command_wraps_beside_its_status_and_folds_to_one_line() -> None:
    command = "echo one two three four five six seven\necho eight"
    assert shell(command, exit_code=0) == [
        "$ echo one two three four five six     ✓",
        "  seven",
        "  echo eight",
    ]
    assert shell(command, exit_code=0, collapsed=True) == [
        "$ echo one two three four five six s…  ✓",
    ]


def test_narrow_call_has_its_status_below() -> None:
    assert shell("git log --oneline", 20, status="error", stopped_by="amy") == [
        "$ git log --oneline",
        "    ■ stopped by amy",
    ]


def test_call_without_text_shows_its_input() -> None:
    assert shell("", input='{"command": "ls"}', exit_code=0) == ["$ ls" + "✓".rjust(36)]
    assert lines("tool_call", "", tool_name="read", input='{"path": "a"}', tool_kind="mcp") == [
        '▪ read path="a"' + "✓".rjust(25)
    ]
    assert lines("tool_call", "{}", tool_name="read", input="{}", tool_kind="mcp") == [
        "▪ read" + "✓".rjust(34)
    ]


def test_call_that_waits_shows_what_would_run_and_asks_below() -> None:
    question = permission_question("you", is_own=True, may_decide=True)
    shown = shell(
        "git status",
        input='{"command": "git push\\nrm -rf x"}',
        status="pending",
        collapsed=True,
        question=question,
    )
    assert shown[:2] == ["$ git push" + "? asks".rjust(30), "  rm -rf x"]
    assert " ".join(" ".join(shown[2:]).split()) == " ".join(question.split())


def test_call_of_a_tool_with_a_long_name_is_read_in_a_narrow_window() -> None:
    question = permission_question("you", is_own=True, may_decide=True)
    asked: dict[str, Any] = {"status": "pending", "permission": "asked", "question": question}
    call = {"tool_name": "everything__trigger-elicitation-request", "tool_kind": "mcp", **asked}
    sign = "▪ everything__trigger-elicitati…  ? asks"
    assert lines("tool_call", "", **call) == [
        sign,
        "  Run this with your rights?",
        "  <key:allow_once> once ·",
        "  <key:allow_always> always · <key:deny>",
        "  no",
    ]
    shown = lines("tool_call", "", input='{"path": "a"}', **call)
    assert shown[:2] == [sign, '  path="a"']
    cell = render_cell(view("tool_call", "as written", **call), 40, THEME)
    assert {cell.place_of(offset)[0] for offset in range(10)} == {1}


@pytest.mark.parametrize(
    "fields", [{"status": "running"}, {"status": "error"}, {"exit_code": 3}, {"is_error": True}]
)
def test_result_that_runs_or_failed_folds_to_its_last_lines(fields: dict[str, Any]) -> None:
    text = "".join(f"line {number}\n" for number in range(8))
    cell = render_cell(view("tool_result", text, collapsed=True, **fields), 40, THEME)
    lead, *below = plain(cell)
    assert lead[2:] == "▸ 4 earlier lines"
    assert cell.line(0).is_fold and not cell.line(1).is_fold
    assert below == [f"  line {number}" for number in range(4, 8)]


def test_folded_result_has_places_for_all_of_its_text() -> None:
    text = "".join(f"line {number}\n" for number in range(8))
    for status, row_of_fold, hidden in (("done", 3, (21, 48)), ("running", 0, (0, 27))):
        cell = render_cell(view("tool_result", text, collapsed=True, status=status), 40, THEME)
        assert {cell.place_of(offset)[0] for offset in range(*hidden)} == {row_of_fold}
        assert cell.place_of(50) == (4, 3)
    told = lines("tool_result", "path: a.py\n\n-1\n+2", collapsed=True, is_told_above=True)
    assert [line.strip() for line in told] == ["path: a.py", "▸ 3 more lines"]
    kept = lines("tool_result", "1\n2\n3\n4\n5\n", collapsed=True)
    assert kept[-1] == "  5", "a fold would hide one line only"


def test_results_are_shown_as_they_are() -> None:
    assert lines("tool_result", "*a*\n\tb\n\x1b[6nc") == ["  *a*", "          b", "  ␛[6nc"]
    assert lines("tool_result", "bad", is_error=True) == ["✗ bad"]
    assert lines("tool_result", "") == ["  (no output)"]
    assert lines("tool_result", "", status="running") == ["  …"]
    assert lines("tool_result", "a", truncated=True) == ["  a", "  (output was cut off)"]
    assert lines("tool_result", "a", truncated=True, status="running") == [
        "  a",
        "  (more follows when the command ends)",
    ]


def test_collapsed_cell_shows_first_line_as_rendered() -> None:
    assert lines("text", "one\ntwo\nthree\n", collapsed=True) == ["▸ one two three · 3 lines"]
    assert lines("text", "\n# A *plan*\n\nfirst", collapsed=True) == ["▸ A plan · 4 lines"]
    assert lines("text", "*word* " * 30, collapsed=True) == ["▸ " + "word " * 7 + "wo…"]
    assert lines("text", "a\nb", collapsed=True, status="error", stopped_by="amy") == [
        "▸ a b · 2 lines · stopped by amy"
    ]
    assert lines("error", "no such\nmodel", collapsed=True) == ["▸ ✗ no such · 2 lines"]
    assert lines("file", "x = 1\n", path="a.py", collapsed=True) == ["▸ ▤ a.py · 1 line"]
    head, line = lines("text", "a\n\nb", collapsed=True, is_read_from=True)
    assert (head[:25], line) == ("── models read from here ", "▸ a · 3 lines")


TIDY: dict[str, Any] = {
    "metadata": {"drift": DriftOrigin("d", "c", "tidy", 12, "bo").as_json()},
    "drift_kind": "pull",
}


@pytest.mark.parametrize(
    ("text", "fields", "shown"),
    [
        ("", TIDY, ["⇢ from tidy · pull · bo"]),
        ("", TIDY | {"source_context": "tidier"}, ["⇢ from tidier · pull · bo"]),
        ("# T\n\nu", TIDY, ["⇢ from tidy · pull · bo", "T", "", "u"]),
        ("# T\n\nu", TIDY | {"collapsed": True}, ["⇢ from tidy · pull · bo", "▸ T · 3 lines"]),
        ("u", {"source_context": "notes", "drift_kind": "push"}, ["⇢ from notes · push", "u"]),
        ("", {"status": "error", "stopped_by": "amy"}, ["⇢ from another context",
                                                        "■ stopped by amy"]),
    ],
)  # fmt: skip
def test_drift_says_where_it_came_from(text: str, fields: dict[str, Any], shown: list[str]) -> None:
    assert lines("drift", text, **fields) == shown


kinds = st.sampled_from([*BlockKind, "sonnet"])
texts = st.text(alphabet="ab*`-# \n\t字\x1b", max_size=60)
views = st.builds(
    view,
    kind=kinds,
    role=st.sampled_from(list(Role)),
    status=st.sampled_from([*Status, "paused"]),
    text=texts,
    tool_kind=st.sampled_from([None, "shell", "mcp"]),
    tool_name=st.sampled_from([None, "read"]),
    input=st.sampled_from([None, "{}", "[", '{"command": "ls"}', '{"a": {"b": 1}}']),
    exit_code=st.sampled_from([None, 0, 130]),
    is_error=st.booleans(),
    stopped_by=st.sampled_from([None, "amy"]),
    collapsed=st.booleans(),
    truncated=st.booleans(),
    path=st.sampled_from([None, "a.py", "b"]),
)


@given(view=views, width=st.integers(12, 90))
def test_every_view_fits_its_width_and_has_all_its_places(view: CellView, width: int) -> None:
    cell = render_cell(view, width, THEME)
    assert cell.line_count > 0
    assert all(cell.line(number).strip.cell_length <= width for number in range(cell.line_count))
    places = [cell.place_of(offset) for offset in range(len(view.text) + 1)]
    assert places == sorted(places)
    assert places[-1][0] < cell.line_count


@given(changes=st.lists(views, min_size=1, max_size=5))
def test_stream_draws_what_a_single_drawing_draws(changes: list[CellView]) -> None:
    stream = CellRenderer(30, THEME)
    for change in changes:
        fresh = render_cell(change, 30, THEME)
        assert picture(stream.update(change), change.text) == picture(fresh, change.text)


def edit_call(**fields: Any) -> dict[str, Any]:
    return {"tool_name": "block_edit", "tool_kind": "builtin", "input": json.dumps(fields)}


REPLACEMENT = {
    "op": "replace",
    "start_line": 1,
    "end_line": 3,
    "expected_text": "same\nold",
    "content": "same\nnew\nmore",
}


def test_folded_call_that_edits_shows_its_counts_in_one_line() -> None:
    call = edit_call(block_id="fox", operations=[REPLACEMENT])
    assert lines("tool_call", "x", collapsed=True, **call) == [
        "▪ block_edit fox · −1 +2 …             ✓"
    ]


def test_call_that_patches_shows_its_hunks() -> None:
    call = edit_call(block_id="fox", patch="@@ -1,2 +1,2 @@\n a\n-b\n+c\n")
    shown = lines("tool_call", "x", 60, **(call | {"tool_name": "block_apply_patch"}))
    assert [line.strip() for line in shown[1:]] == ["1   a", "2 - b", "2 + c"]


@pytest.mark.parametrize(
    ("tool", "fields", "shown"),
    [
        (
            "file_edit",
            {"path": "a", "old_text": "x\ny", "new_text": "x\nz"},
            ["a", "x", "- y", "+ z"],
        ),
        (
            "file_edit",
            {"path": "a", "start_line": 1, "end_line": 2, "new_text": "z\n"},
            ["a", "@ lines 1 to 2, the last one excluded", "+ z"],
        ),
        ("file_create", {"path": "a", "content": "x\n"}, ["a", "+ x"]),
        (
            "apply_patch",
            {
                "patch": "--- a\n+++ a\n@@ -1 +1 @@\n-b\n+c\n"
                "--- /dev/null\n+++ d\n@@ -0,0 +1 @@\n+e\n"
            },
            ["2 files", "a", "1 - b", "1 + c", "d", "1 + e"],
        ),
        ("apply_patch", {"patch": "--- a\n+++ a\n@@ -1 +1 @@\n-b\n"}, ["as written"]),
    ],
)  # fmt: skip
def test_call_that_changes_files_shows_how(
    tool: str, fields: dict[str, Any], shown: list[str]
) -> None:
    found = lines("tool_call", "as written", 60, **(edit_call(**fields) | {"tool_name": tool}))
    found[0] = found[0].removeprefix(f"▪ {tool} ").partition(" ·")[0].removesuffix("✓")
    assert [one.strip() for one in found] == shown


def test_change_of_a_file_is_drawn_where_it_is_made_in_the_colours_of_its_language() -> None:
    before = "".join(f"x{number} = None\n" for number in range(1, 31))
    after = before.replace("x3 = None", "return 3").replace("x28 = None\n", "")
    call = edit_call(path="a.py", old_text="-", new_text="+") | {"tool_name": "file_edit"}
    cell = render_cell(view("tool_call", unified_diff(before, after, "a.py"), **call), 60, THEME)
    shown = [line.strip() for line in plain(cell)]
    assert shown[0].startswith("▪ file_edit a.py · −2 +1")
    assert shown[3:6] == ["3 - x3 = None", "3 + return 3", "4   x4 = None"]
    assert shown[8:] == ["…", *(f"{n}   x{n} = None" for n in (25, 26, 27)), "28 - x28 = None",
                         "28   x29 = None", "29   x30 = None"]  # fmt: skip
    styles = [one.style for one in cell.line(4).strip if one.text.strip() == "return"]
    assert styles == [on_ground(THEME.code.keyword) + THEME.edit_surface]


def test_very_long_change_is_drawn_in_part_and_counted() -> None:
    call = edit_call(path="a", content="x") | {"tool_name": "file_create"}
    shown = lines("tool_call", unified_diff("", "x\n" * 1_000, "a"), **call)
    assert shown[-1].strip() == "… 801 more lines" and shown[-2].strip() == "199 + x"


@pytest.mark.parametrize(
    "fields",
    [{}, {"block_id": 3}, {"block_id": "x"}, {"block_id": "x", "operations": [{"line": "a"}]}],
)
def test_call_that_edits_with_wrong_arguments_shows_its_text(fields: dict[str, Any]) -> None:
    assert lines("tool_call", "as written", **edit_call(**fields))[0].startswith(
        "▪ block_edit as written"
    )


def test_call_that_edits_very_many_lines_shows_a_count_of_the_rest() -> None:
    content = "\n".join(map(str, range(5000)))
    insert = {"op": "insert", "line": 0, "content": content}
    shown = lines("tool_call", "x", **edit_call(block_id="x", operations=[insert]))
    assert len(shown) < 300 and shown[-1].strip() == "… 4801 more lines"
    assert "−0 +5000" in shown[0]
