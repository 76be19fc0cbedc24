"""Arguments and output of `antiphon call`; the commands and their documentation."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from antiphon.cli.call import JsonlCaller, call_lines, dump_json_line, parse_json, parse_params
from antiphon.cli.commands import antiphon
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.daemon import main as kernel_program
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def unreachable() -> Any:
    raise AntiphonError(ErrorCode.NO_KERNEL, "No kernel here: start one.")


class EchoingCalls(ToolClient):
    """Answers with what it was asked; knows which tools take a context."""

    def __init__(self) -> None:
        super().__init__(unreachable)

    async def call(self, tool: str, params: Mapping[str, Any]) -> dict[str, Any]:
        if tool == "kernel.tools":
            takes = {"type": "object", "properties": {"context": {}}}
            return {
                "tools": [
                    {"name": "block.list", "parameters": takes},
                    {"name": "block.read", "parameters": {"properties": {"block_id": {}}}},
                ]
            }
        return {"tool": tool, "params": dict(params)}


async def arriving(*lines: bytes) -> AsyncIterator[bytes]:
    for line in lines:
        yield line


async def answers_to(*lines: bytes, context: str | None = None) -> list[dict[str, Any]]:
    sink = io.BytesIO()
    caller = JsonlCaller(EchoingCalls(), context)
    await call_lines(caller, arriving(*lines), sink)
    return [json.loads(line) for line in sink.getvalue().splitlines()]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "nul",
        '{"a": NaN}',
        "[1, Infinity]",
        "[1e999]",
        "[" * 100_000,
        '"\x00"',
        b"\xff\xfe",
        "'a'",
    ],
)
def test_parse_json_of_other_text_raises_invalid_json(text: str | bytes) -> None:
    with pytest.raises(AntiphonError, match="This is not JSON") as refused:
        parse_json(text)
    assert refused.value.code is ErrorCode.INVALID_JSON


@pytest.mark.parametrize("text", ["[]", "3", '"context"', "null"])
def test_parameters_are_an_object(text: str) -> None:
    assert parse_params(" \n") == {}
    with pytest.raises(AntiphonError, match="JSON object") as refused:
        parse_params(text)
    assert refused.value.code is ErrorCode.INVALID_PARAMS


@given(st.dictionaries(st.text(), JSON, max_size=3))
def test_printed_line_is_the_same_json_and_one_line(value: dict[str, Any]) -> None:
    line = dump_json_line(value)
    assert json.loads(line) == value
    assert len(line.splitlines()) == 1
    assert not set(line) & set("\x1b\x07\x9b\x85\u202e\u2066\u200b")
    line.encode("utf-8")


def test_lone_surrogate_is_printed_escaped() -> None:
    assert json.loads(dump_json_line({"a": "x\ud800y"}).encode("utf-8")) == {"a": "x\ud800y"}


async def test_jsonl_caller_answers_in_order_and_survives_invalid_line() -> None:
    answers = await answers_to(
        b'{"id": 1, "tool": "block.read", "params": {"block_id": "b"}}',
        b"{broken",
        b"",
        b"[1]",
        b'{"id": "x"}',
        b'{"id": 5, "tool": "block.read", "params": [1]}',
        b"\xff\xff",
        b'{"id": 7, "tool": "session.whoami"}',
    )
    assert [answer["id"] for answer in answers] == [1, None, None, "x", 5, None, 7]
    codes = [answer.get("error", {}).get("code") for answer in answers]
    assert codes == [
        None,
        "invalid_json",
        "invalid_params",
        "invalid_params",
        "invalid_params",
        "invalid_json",
        None,
    ]
    assert answers[0]["result"] == {"tool": "block.read", "params": {"block_id": "b"}}


async def test_jsonl_caller_without_kernel_answers_every_line_with_no_kernel() -> None:
    sink = io.BytesIO()
    lines = arriving(b'{"id": 1, "tool": "a"}', b'{"id": 2, "tool": "b"}')
    await call_lines(JsonlCaller(ToolClient(unreachable), None), lines, sink)
    answers = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert [(one["id"], one["error"]["code"]) for one in answers] == [
        (1, "no_kernel"),
        (2, "no_kernel"),
    ]


async def test_named_context_is_filled_in_where_a_tool_takes_one() -> None:
    answers = await answers_to(
        b'{"id": 1, "tool": "block.list"}',
        b'{"id": 2, "tool": "block.list", "params": {"context": "other"}}',
        b'{"id": 3, "tool": "block.read", "params": {"block_id": "b"}}',
        context="notes",
    )
    assert [answer["result"]["params"] for answer in answers] == [
        {"context": "notes"},
        {"context": "other"},
        {"block_id": "b"},
    ]


PAGE = Path(__file__).parents[3] / "docs" / "command-line.md"


def commands() -> list[click.Command]:
    return [antiphon, *antiphon.commands.values(), *kernel_program.commands.values()]


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_every_command_and_option_is_in_the_docs(command: click.Command) -> None:
    page = PAGE.read_text("utf-8")
    assert f"`antiphon {command.name}" in page or command is antiphon
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name not in ("help", "version"):
            assert any(f"{name}" in page for name in parameter.opts), parameter.opts


@pytest.mark.parametrize("name", ["demo", "join", "call"])
def test_commands_have_help(name: str) -> None:
    shown = CliRunner().invoke(antiphon, [name, "--help"])
    assert shown.exit_code == 0
    assert f"Usage: antiphon {name}" in shown.output


@pytest.mark.parametrize(
    ("arguments", "given", "said"),
    [
        (("--as", "ada", "call", "session.whoami"), b"", "after the command"),
        (("--data", "x", "call", "session.whoami"), b"", "after the command"),
        (("call",), b"", "or --jsonl. `antiphon call --help` says more."),
        (("call", "session.whoami", "--jsonl"), b"", "or --jsonl"),
        (("fly",), b"", "no such command 'fly'"),
        ((), b"", "without one use `antiphon --linear` or `antiphon call`"),
        (("send",), b" \n", "standard input is empty"),
        (("send",), b"\xff", "standard input is not UTF-8"),
        (("run", " "), b"", "the prompt is empty"),
        (("run",), b"", "standard input is empty"),
        (("run", "x", "--max-rounds", "0"), b"", "0 is not in the range"),
        (("run", "x", "--output", "xml"), b"", "'xml' is not one of"),
        (("export", "--shape", "openai"), b"", "--shape goes with --format messages"),
        (("invite",), b"", "missing option '--role'"),
        (("share", "--web", "--ask"), b"", "not with keys"),
        (("share", "--uses", "2"), b"", "go with --web"),
        (("invite", "--role", "owner"), b"", "'viewer'"),
        (("invite", "--role", "viewer", "--expires", "soon"), b"", "7d"),
        (("invite", "--role", "viewer", "--uses", "0"), b"", "1"),
        *(
            ((*command, "--data", ""), b"x", "it is empty: name a folder")
            for command in (
                *(("call", "session.whoami"), ("send",), ("run", "x"), ("models",), ("tail",)),
                *(("export",), ("doctor",), ("invite", "--role", "viewer"), ("backup", "f")),
                *(("log",), ("serve",), ("demo",), ("join",)),
            )
        ),
    ],
)
def test_wrong_use_of_a_command_is_one_line_and_starts_no_kernel(
    arguments: tuple[str, ...],
    given: bytes,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(antiphon, arguments, input=given, prog_name="antiphon")
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.startswith("antiphon: ") and done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
