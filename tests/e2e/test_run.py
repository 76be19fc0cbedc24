"""`antiphon run`: what it prints in each form, and each way in which it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from antiphon_kernel.config import NO_MODEL
from antiphon_kernel.providers import ModelKind
from antiphon_kernel.types.constants import ExitCode
from tests.e2e.machine import ANTIPHON, Machine
from tests.fork_server import start_process
from tests.kernel import agents
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


def test_agent_answers_and_its_questions_are_decided_by_the_options(machine: Machine) -> None:
    options = [
        {"optionId": "a", "name": "Always", "kind": "allow_always"},
        {"optionId": "r", "name": "No", "kind": "reject_once"},
    ]
    call = {"toolCallId": "t1", "title": "Search for it", "kind": "search", "status": "pending"}
    asked = {"toolCall": {"toolCallId": "t1"}, "options": options}
    steps = [
        {"call": call},
        {"request": {"method": "session/request_permission", "params": asked}},
        {"call_update": {"toolCallId": "t1", "status": "completed"}},
    ]
    script = machine.home / "script.json"
    script.write_text(json.dumps({"session/prompt": [steps]}), "utf-8")
    program = Path(*agents.__path__) / "scripted_agent.py"
    command = json.dumps([sys.executable, "-SE", str(program), str(script)])
    configure(machine, f"[agents.bot]\ncommand = {command}\nenv = {{ TOKEN = 'hunter2' }}")
    done = machine.run("run", "--agent", "bot", "--output", "stream-json", "Go.")
    ends(done, ExitCode.PERMISSION)
    init, *said = events(done)
    assert init["model"] == "bot"
    kinds = {one["type"]: one for one in said}
    assert kinds["tool_use"]["tool"] == "Search for it"
    assert kinds["permission"] == kinds["permission"] | {"tool": "search", "allowed": False}
    assert '"optionId": "r"' in kinds["message"]["text"]
    done = machine.run("run", "--agent", "bot", "--allow", "search", "Go.")
    ends(done, ExitCode.OK)
    assert '"optionId": "a"' in done.stdout
    done = machine.run("run", "--agent", "nobody", "Go.")
    ends(done, ExitCode.USAGE)
    assert "there is no model or agent 'nobody'; there are: " in done.stderr
    listed = machine.succeed("models").stdout
    assert f"\n    runs {sys.executable} -SE " in listed
    assert "hunter2" not in listed + machine.succeed("call", "agent.list").stdout


def test_answer_is_printed_in_the_form_that_is_asked_for(machine: Machine) -> None:
    thought, usage = {"type": "thinking", "text": "Hm."}, {"type": "usage", "input_tokens": 7}
    usage |= {"output_tokens": 9}
    configure(
        machine,
        scripted(machine, "robot", thought, TEXT, END),
        scripted(machine, "long", TEXT, CALL, TEXT, usage, END),
        scripted(machine, "asks", thought, CALL, TEXT, usage, END, rules='shell = "ask"'),
        scripted(machine, "other", {"type": "text", "text": "Somebody else."}, END),
    )
    done = machine.run("run", stdin="Do\nit.\n")
    ends(done, ExitCode.OK)
    assert done.stdout == "It is done.\n"
    first, *_ = machine.call(machine.data, "block.list")["blocks"]
    assert machine.content(first["name"]) == "Do\nit."

    done = machine.run("run", "@long Do it.", "--output", "json")
    ends(done, ExitCode.OK)
    (result,) = events(done)
    assert result["type"] == "result" and result["outcome"] == "done"
    assert result["text"] == "It is done.\n\nIt is done."
    assert result["usage"]["input_tokens"] == 7 and result["usage"]["output_tokens"] == 9
    assert result["error"] is None and result["denied"] == []

    done = machine.run("run", "@asks Do it.", "--output", "stream-json", "--allow", "shell")
    ends(done, ExitCode.OK)
    found = events(done)
    kinds = ["init", "thinking", "tool_use", "permission", "tool_result", "message", "usage"]
    assert [one["type"] for one in found] == [*kinds, "result"]
    by_type = {one["type"]: one for one in found}
    assert by_type["init"]["model"] == "asks" and by_type["init"]["context"] == "default"
    assert by_type["tool_use"]["tool"] == "shell"
    assert by_type["tool_use"]["input"] == {"command": "echo from the shell"}
    assert by_type["permission"]["allowed"] is True
    assert by_type["tool_result"]["output"] == "from the shell\n"
    assert by_type["tool_result"]["exit_code"] == 0
    assert by_type["tool_result"]["call"] == by_type["tool_use"]["block"]

    done = machine.run("run", "Do it.", "--model", "other", "--context", "notes")
    ends(done, ExitCode.OK)
    assert done.stdout == "Somebody else.\n"
    labels = machine.call(machine.data, "context.list")["contexts"]
    assert "notes" in [one["label"] for one in labels]


async def test_model_of_a_server_calls_tools_is_checked_and_its_answer_may_be_cut(
    machine: Machine,
) -> None:
    kind, calls = ModelKind.OPENAI_CHAT, '{"command": "printf seen"}'

    async def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(machine.run, "run", "@wired Look.", *arguments)

    async with WireServer() as server:
        configure(machine, wired(server), scripted(machine, "robot", TEXT, END))
        server.answers.append(answer(kind, Said("Looking."), Called("c1", "shell", calls)))
        server.answers.append(answer(kind, Said("It says seen."), counted=Counted(50, 5)))
        whole = await run("--output", "json", "--allow", "shell")
        results = [one for one in server.requests[1].body["messages"] if one["role"] == "tool"]
        long = answer(kind, Said("The beginning of a long answer."))
        server.answers.append(long.cut(long.body.index(b"a long"), closes=True))
        broken = await run()
        server.answers.append(answer(kind, Said("The beginning"), full=True))
        full = await run()
        server.answers.append(answer(kind, Said("OK.")))
        checked = await asyncio.to_thread(machine.run, "models", "--check", "--json")
        body = server.requests[-1].body
        failed = await asyncio.to_thread(machine.run, "models", "--check")
    ends(whole, ExitCode.OK)
    (result,) = events(whole)
    assert result["text"] == "Looking.\n\nIt says seen."
    assert "seen" in json.dumps(results)
    assert result["usage"]["requests"] == 2
    ends(broken, ExitCode.FAILED)
    assert broken.stdout.startswith("The begin")
    assert "the connection to the provider ended" in broken.stderr
    ends(full, ExitCode.LIMIT)
    assert "the most tokens" in full.stderr
    ends(checked, ExitCode.OK)
    told = [{"name": name, "ok": True} for name in ("wired", "robot")]
    assert json.loads(checked.stdout)["checked"] == told
    assert 1 <= (body.get("max_tokens") or body["max_completion_tokens"]) <= 16
    ends(failed, ExitCode.FAILED)
    assert "the test has no answer" in failed.stdout


def test_question_of_a_server_is_put_aside(machine: Machine) -> None:
    program = Path(__file__).parents[1] / "programs" / "mcp_server.py"
    asks = {"type": "tool_call", "name": "made__ask", "input": {}}
    server = f'[mcp.made]\ncommand = ["{sys.executable}", "{program}"]'
    configure(machine, scripted(machine, "curious", asks, TEXT, END), server)
    done = machine.run("run", "Go on.", "--output", "stream-json")
    ends(done, ExitCode.OK)
    (result,) = [one for one in events(done) if one["type"] == "tool_result"]
    assert json.loads(result["output"]) == {"action": "cancel"}


def test_run_that_cannot_begin_says_what_to_do(machine: Machine) -> None:
    configure(machine)
    done = machine.run("run", "Do it.")
    ends(done, ExitCode.FAILED)
    assert NO_MODEL in done.stderr
    ends(machine.run("run", "Do it.", "--url", "ws://127.0.0.1:1/sync?token=x"), ExitCode.NO_KERNEL)


def test_failure_refusal_and_limit_of_a_turn_have_exit_codes(
    machine: Machine, tmp_path: Path
) -> None:
    error = {"type": "error", "message": "The model is on fire."}
    touch = {**CALL, "input": {"command": f"touch {tmp_path}/ran"}}
    usage = {"type": "usage", "input_tokens": 700, "output_tokens": 9}
    configure(
        machine,
        "[context]\nmax_turn_tokens = 500",
        scripted(machine, "robot", CALL, CALL, TEXT, END),
        scripted(machine, "burning", TEXT, error),
        scripted(machine, "asks", touch, TEXT, END, rules='shell = "ask"'),
        scripted(machine, "costly", TEXT, usage, CALL, TEXT, END),
    )
    done = machine.run("run", "Do it.", "--model", "nobody")
    ends(done, ExitCode.USAGE)
    assert "there are: robot" in done.stderr and done.stdout == ""

    done = machine.run("run", "@burning Do it.")
    ends(done, ExitCode.FAILED)
    assert done.stdout == "It is done.\n"
    assert "The model is on fire." in done.stderr
    (result,) = events(machine.run("run", "@burning Do it.", "--output", "json"))
    assert result["outcome"] == "failed" and result["exit_code"] == 1
    assert "on fire" in result["error"]["message"]

    done = machine.run("run", "@asks Do it.")
    ends(done, ExitCode.PERMISSION)
    assert done.stdout == "It is done.\n"
    assert "--allow shell gives it" in done.stderr
    assert not (tmp_path / "ran").exists()
    ends(machine.run("run", "@asks Do it.", "--allow", "block_edit"), ExitCode.PERMISSION)
    ends(machine.run("run", "@asks Do it.", "--allow", "shell"), ExitCode.OK)
    assert (tmp_path / "ran").exists()
    ends(machine.run("run", "@asks Do it."), ExitCode.PERMISSION)

    done = machine.run("run", "Do it.", "--max-rounds", "1", "--output-format", "json")
    ends(done, ExitCode.LIMIT)
    (result,) = events(done)
    assert result["outcome"] == "limit" and "1 round" in result["error"]["message"]
    ends(machine.run("run", "Do it."), ExitCode.OK)

    done = machine.run("run", "@costly Do it.")
    ends(done, ExitCode.LIMIT)
    assert "500" in done.stderr


def test_interrupted_turn_ends_with_130_whoever_stops_it(machine: Machine) -> None:
    slow = {"at_ms": 600_000, "type": "text", "text": "Too late."}
    configure(machine, scripted(machine, "robot", TEXT, slow, END))

    def written() -> list[dict[str, Any]]:
        listed = machine.call(machine.data, "block.list")["blocks"]
        return [one for one in listed if one["role"] == "model"]

    def start(output: str) -> subprocess.Popen[str]:
        return start_process(
            [ANTIPHON, "run", "Do it.", "--output", output],
            cwd=machine.project,
            env=machine.env,
            stdout=subprocess.PIPE,
            text=True,
        )

    running = start("stream-json")
    assert running.stdout is not None
    assert json.loads(running.stdout.readline())["type"] == "init"
    wait_until(written, "the model writes")
    running.send_signal(signal.SIGINT)
    output, _ = running.communicate(timeout=PATIENCE)
    assert running.returncode == ExitCode.INTERRUPTED
    result = json.loads(output.splitlines()[-1])
    assert result["outcome"] == "interrupted" and result["exit_code"] == 130
    (block,) = written()
    assert block["status"] == "error" and block["stop_reason"] == "interrupted"

    running = start("json")
    wait_until(lambda: len(written()) == 2, "the model writes again")
    assert machine.call(machine.data, "turn.interrupt")["stopped"]
    output, _ = running.communicate(timeout=PATIENCE)
    assert running.returncode == ExitCode.INTERRUPTED
    assert json.loads(output)["outcome"] == "interrupted"
