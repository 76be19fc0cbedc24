"""`antiphon run`: what it prints in each form, and each way in which it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from antiphon_kernel.config import NO_MODEL
from antiphon_kernel.providers import ModelKind
from antiphon_kernel.types.constants import ExitCode
from tests.e2e.machine import ANTIPHON, Machine
from tests.waiting import PATIENCE, wait_until
from tests.wire.answering import Called, Counted, Said, answer
from tests.wire.server import WireServer

TEXT = {"type": "text", "text": "It is done."}
CALL = {"type": "tool_call", "name": "shell", "input": {"command": "echo from the shell"}}
END = {"type": "end"}


def configure(machine: Machine, *models: str) -> None:
    path = machine.home / "config" / "antiphon" / "config.toml"
    path.write_text("\n".join(["[discovery]\nlocal_ports = []", *models]), "utf-8")


def scripted(machine: Machine, name: str, *events: Mapping[str, Any], rules: str = "") -> str:
    """The table of a model that plays events, each of them at once unless it says when."""
    path = machine.home / f"{name}.jsonl"
    path.write_text("".join(json.dumps({"at_ms": 0, **one}) + "\n" for one in events), "utf-8")
    table = f'[models.{name}]\nkind = "scripted"\nmodel = "{path}"'
    return f"{table}\n[models.{name}.permissions]\n{rules}" if rules else table


def wired(server: WireServer, name: str = "wired", more: str = "") -> str:
    kind = ModelKind.OPENAI_CHAT
    url = server.base_url(kind)
    return f'[models.{name}]\nkind = "{kind}"\nmodel = "m"\nbase_url = "{url}"\n{more}'


def events(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines()]


def ends(done: subprocess.CompletedProcess[str], code: ExitCode) -> None:
    assert done.returncode == code, done.stdout + done.stderr


# What it prints


def test_answer_is_printed_as_text(machine: Machine) -> None:
    configure(machine, scripted(machine, "robot", {"type": "thinking", "text": "Hm."}, TEXT, END))
    done = machine.run("run", "Do it.")
    ends(done, ExitCode.OK)
    assert done.stdout == "It is done.\n"


def test_prompt_comes_from_standard_input(machine: Machine) -> None:
    configure(machine, scripted(machine, "robot", TEXT, END))
    ends(machine.run("run", stdin="Do\nit.\n"), ExitCode.OK)
    first, *_ = machine.call(machine.data, "block.list")["blocks"]
    read = machine.call(machine.data, "block.read", block_id=first["name"])
    assert read["content"] == "Do\nit."


def test_json_is_one_object_at_the_end(machine: Machine) -> None:
    usage = {"type": "usage", "input_tokens": 7, "output_tokens": 9}
    configure(machine, scripted(machine, "robot", TEXT, CALL, TEXT, usage, END))
    done = machine.run("run", "Do it.", "--output", "json")
    ends(done, ExitCode.OK)
    (result,) = events(done)
    assert result["type"] == "result" and result["outcome"] == "done"
    assert result["text"] == "It is done.\n\nIt is done."
    assert result["usage"]["input_tokens"] == 7 and result["usage"]["output_tokens"] == 9
    assert result["error"] is None and result["denied"] == []


def test_stream_json_is_an_object_for_each_event(machine: Machine) -> None:
    usage = {"type": "usage", "input_tokens": 7, "output_tokens": 9}
    thought = {"type": "thinking", "text": "Hm."}
    rules = 'shell = "ask"'
    configure(machine, scripted(machine, "robot", thought, CALL, TEXT, usage, END, rules=rules))
    done = machine.run("run", "Do it.", "--output", "stream-json", "--allow", "shell")
    ends(done, ExitCode.OK)
    found = events(done)
    kinds = ["init", "thinking", "tool_use", "permission", "tool_result", "message", "usage"]
    assert [one["type"] for one in found] == [*kinds, "result"]
    by_type = {one["type"]: one for one in found}
    assert by_type["init"]["model"] == "robot" and by_type["init"]["context"] == "default"
    assert by_type["tool_use"]["tool"] == "shell"
    assert by_type["tool_use"]["input"] == {"command": "echo from the shell"}
    assert by_type["permission"]["allowed"] is True
    assert by_type["tool_result"]["output"] == "from the shell\n"
    assert by_type["tool_result"]["exit_code"] == 0
    assert by_type["tool_result"]["call"] == by_type["tool_use"]["block"]


def test_named_model_answers_in_a_context_that_is_made(machine: Machine) -> None:
    other = {"type": "text", "text": "Somebody else."}
    models = scripted(machine, "robot", TEXT, END), scripted(machine, "other", other, END)
    configure(machine, *models)
    done = machine.run("run", "Do it.", "--model", "other", "--context", "notes")
    ends(done, ExitCode.OK)
    assert done.stdout == "Somebody else.\n"
    labels = machine.call(machine.data, "context.list")["contexts"]
    assert "notes" in [one["label"] for one in labels]


async def test_model_of_a_server_calls_tools_and_answers(machine: Machine) -> None:
    kind, calls = ModelKind.OPENAI_CHAT, '{"command": "printf seen"}'
    async with WireServer() as server:
        server.answers.append(answer(kind, Said("Looking."), Called("c1", "shell", calls)))
        server.answers.append(answer(kind, Said("It says seen."), counted=Counted(50, 5)))
        configure(machine, wired(server))
        done = await asyncio.to_thread(
            machine.run, "run", "Look.", "--output", "json", "--allow", "shell"
        )
        results = [one for one in server.requests[1].body["messages"] if one["role"] == "tool"]
    ends(done, ExitCode.OK)
    (result,) = events(done)
    assert result["text"] == "Looking.\n\nIt says seen."
    assert "seen" in json.dumps(results)
    assert result["usage"]["requests"] == 2


# How it ends


def test_failed_turn_ends_with_1(machine: Machine) -> None:
    error = {"type": "error", "message": "The model is on fire."}
    configure(machine, scripted(machine, "robot", TEXT, error))
    done = machine.run("run", "Do it.")
    ends(done, ExitCode.FAILED)
    assert done.stdout == "It is done.\n"
    assert "The model is on fire." in done.stderr
    (result,) = events(machine.run("run", "Do it.", "--output", "json"))
    assert result["outcome"] == "failed" and result["exit_code"] == 1
    assert "on fire" in result["error"]["message"]


async def test_answer_that_the_connection_cut_ends_with_1(machine: Machine) -> None:
    async with WireServer() as server:
        configure(machine, wired(server))
        whole = answer(ModelKind.OPENAI_CHAT, Said("The beginning of a long answer."))
        server.answers.append(whole.cut(whole.body.index(b"a long"), closes=True))
        done = await asyncio.to_thread(machine.run, "run", "Do it.")
    ends(done, ExitCode.FAILED)
    assert done.stdout.startswith("The begin")
    assert "the connection to the provider ended" in done.stderr


async def test_answer_that_reached_its_most_tokens_ends_with_7(machine: Machine) -> None:
    async with WireServer() as server:
        configure(machine, wired(server))
        server.answers.append(answer(ModelKind.OPENAI_CHAT, Said("The beginning"), full=True))
        done = await asyncio.to_thread(machine.run, "run", "Do it.")
    ends(done, ExitCode.LIMIT)
    assert "the most tokens" in done.stderr


def test_kernel_without_a_model_ends_with_1_and_says_what_to_do(machine: Machine) -> None:
    configure(machine)
    done = machine.run("run", "Do it.")
    ends(done, ExitCode.FAILED)
    assert NO_MODEL in done.stderr


def test_wrong_arguments_end_with_2(machine: Machine) -> None:
    configure(machine, scripted(machine, "robot", TEXT, END))
    for arguments, said in (
        (("Do it.", "--model", "nobody"), "there are: robot"),
        ((" ",), "the prompt is empty"),
        ((), "standard input is empty"),
        (("Do it.", "--max-rounds", "0"), "0"),
        (("Do it.", "--output", "xml"), "xml"),
    ):
        done = machine.run("run", *arguments)
        ends(done, ExitCode.USAGE)
        assert said in done.stderr and done.stdout == ""


def test_kernel_that_cannot_be_reached_ends_with_3(machine: Machine) -> None:
    done = machine.run("run", "Do it.", "--url", "ws://127.0.0.1:1/sync?token=x")
    ends(done, ExitCode.NO_KERNEL)


def test_folder_that_is_not_trusted_ends_with_5(machine: Machine) -> None:
    data = machine.home / "clone" / ".antiphon"
    data.mkdir(parents=True)
    (data / "kernel.port").write_text("1")
    done = machine.run("run", "Do it.", cwd=data.parent)
    ends(done, ExitCode.UNTRUSTED_FOLDER)


def test_call_that_nobody_allows_is_refused_and_ends_with_6(
    machine: Machine, tmp_path: Path
) -> None:
    touch = {**CALL, "input": {"command": f"touch {tmp_path}/ran"}}
    rules = 'shell = "ask"'
    configure(machine, scripted(machine, "robot", touch, TEXT, END, rules=rules))
    done = machine.run("run", "Do it.")
    ends(done, ExitCode.PERMISSION)
    assert done.stdout == "It is done.\n"
    assert "--allow shell gives it" in done.stderr
    assert not (tmp_path / "ran").exists()
    ends(machine.run("run", "Do it.", "--allow", "block_edit"), ExitCode.PERMISSION)
    ends(machine.run("run", "Do it.", "--allow", "shell"), ExitCode.OK)
    assert (tmp_path / "ran").exists()
    ends(machine.run("run", "Do it."), ExitCode.PERMISSION)


def test_limit_of_rounds_ends_with_7(machine: Machine) -> None:
    configure(machine, scripted(machine, "robot", CALL, CALL, TEXT, END))
    done = machine.run("run", "Do it.", "--max-rounds", "1", "--output-format", "json")
    ends(done, ExitCode.LIMIT)
    (result,) = events(done)
    assert result["outcome"] == "limit" and "1 round" in result["error"]["message"]
    ends(machine.run("run", "Do it."), ExitCode.OK)


def test_budget_of_the_configuration_ends_with_7(machine: Machine) -> None:
    usage = {"type": "usage", "input_tokens": 700, "output_tokens": 9}
    model = scripted(machine, "robot", TEXT, usage, CALL, TEXT, END)
    configure(machine, "[context]\nmax_turn_tokens = 500", model)
    done = machine.run("run", "Do it.")
    ends(done, ExitCode.LIMIT)
    assert "500" in done.stderr


def start(machine: Machine, output: str) -> subprocess.Popen[str]:
    """Start a run that does not end by itself."""
    slow = {"at_ms": 600_000, "type": "text", "text": "Too late."}
    configure(machine, scripted(machine, "robot", TEXT, slow, END))
    return subprocess.Popen(
        [ANTIPHON, "run", "Do it.", "--output", output],
        cwd=machine.project,
        env=machine.env,
        stdout=subprocess.PIPE,
        text=True,
    )


def written(machine: Machine) -> list[dict[str, Any]]:
    """Return what models have written."""
    listed = machine.call(machine.data, "block.list")["blocks"]
    return [one for one in listed if one["role"] == "model"]


def test_ctrl_c_interrupts_the_turn_and_ends_with_130(machine: Machine) -> None:
    running = start(machine, "stream-json")
    assert running.stdout is not None
    assert json.loads(running.stdout.readline())["type"] == "init"
    wait_until(lambda: written(machine), "the model writes")
    running.send_signal(signal.SIGINT)
    output = running.stdout.read()
    assert running.wait(60) == ExitCode.INTERRUPTED
    result = json.loads(output.splitlines()[-1])
    assert result["outcome"] == "interrupted" and result["exit_code"] == 130
    (block,) = written(machine)
    assert block["status"] == "error" and block["stop_reason"] == "interrupted"


def test_turn_that_somebody_else_stops_ends_with_130(machine: Machine) -> None:
    running = start(machine, "json")
    wait_until(lambda: written(machine), "the model writes")
    assert machine.call(machine.data, "turn.interrupt")["stopped"]
    output, _ = running.communicate(timeout=PATIENCE)
    assert running.returncode == ExitCode.INTERRUPTED
    assert json.loads(output)["outcome"] == "interrupted"
