"""`antiphon models`, files of projects that have to be trusted, and where keys of providers go."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from antiphon_kernel.client.discovery import running_kernels
from antiphon_kernel.config import NO_MODEL
from antiphon_kernel.types.constants import ExitCode
from tests.e2e.machine import Machine
from tests.e2e.test_run import END, TEXT, configure, scripted, wired
from tests.waiting import wait_until
from tests.wire.server import JSON, WireAnswer, WireRequest, WireServer

EVIL = '[models.evil]\nkind = "openai-chat"\nmodel = "m"\nbase_url = "http://127.0.0.1:9/v1"\n'


def project_file(machine: Machine) -> Path:
    path = machine.project / ".antiphon" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    return path


def test_models_and_problems_are_listed(machine: Machine) -> None:
    robot = scripted(machine, "robot", TEXT, END)
    small = '[models.small]\nkind = "openai-chat"\nmodel = "x"\nwindow = 8000\nbase_url = "http://127.0.0.1:9/v1"'
    configure(machine, robot, '[models.bad]\nkind = "opnai"', small)
    done = machine.succeed("models", env={"ANTHROPIC_API_KEY": "sk-x"})
    assert "robot*" in done.stdout and "claude " in done.stdout
    assert "$ANTHROPIC_API_KEY" in done.stdout
    assert (
        "\n    tools: block_read, block_edit, block_search, file_read, file_edit, shell\n"
        in done.stdout
    )
    assert "config.toml:7: [models.bad]" in done.stderr
    listed = json.loads(machine.succeed("models", "--json").stdout)
    assert [one["name"] for one in listed["models"]] == ["robot", "small", "claude"]
    assert [one["line"] for one in listed["problems"]] == [7]
    log = (machine.project / ".antiphon" / "kernel.log").read_text("utf-8")
    assert "config.toml:7: [models.bad]" in log


def test_projects_file_counts_once_it_is_trusted_as_it_is(machine: Machine) -> None:
    project_file(machine).write_text(EVIL, "utf-8")
    done = machine.succeed("models")
    assert done.stdout.startswith(NO_MODEL)
    assert (
        "config.toml:4: [models.evil]: base_url takes your trust: `antiphon trust " in done.stderr
    )
    unasked = machine.run("trust", str(machine.project))
    assert unasked.returncode == ExitCode.USAGE
    assert 'base_url = "http://127.0.0.1:9/v1"' in unasked.stdout
    machine.succeed("trust", str(machine.project), "--yes")
    machine.close()
    assert "evil" in machine.succeed("models").stdout
    assert "already" in machine.succeed("trust", str(machine.project)).stdout
    project_file(machine).write_text(EVIL.replace(":9/", ":10/"), "utf-8")
    machine.close()
    assert "evil" not in machine.succeed("models").stdout


def test_server_of_a_project_is_started_once_it_is_trusted_as_it_is(
    machine: Machine, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    servers = machine.project / ".mcp.json"

    def name(*arguments: str) -> None:
        entry = {"command": "sh", "args": ["-c", f"touch {ran}; exit 3", *arguments]}
        servers.write_text(json.dumps({"mcpServers": {"theirs": entry}}))

    def listed() -> dict[str, Any]:
        done = machine.succeed("call", "mcp.list", '{"start": true}')
        return {one["name"]: one for one in json.loads(done.stdout)["servers"]}

    name()
    assert listed() == {} and not ran.exists()
    done = machine.succeed("models")
    assert "the server 'theirs' is left out: it takes your trust: `antiphon tr" in done.stderr
    unasked = machine.run("trust", str(machine.project))
    assert unasked.returncode == ExitCode.USAGE and "; exit 3" in unasked.stdout
    machine.succeed("trust", str(machine.project), "--yes")
    machine.close()
    problem = wait_until(lambda: listed()["theirs"].get("problem"), "the end of its process")
    assert "its process has ended" in problem
    assert ran.exists()
    ran.unlink()
    name("changed")
    machine.close()
    assert listed() == {} and not ran.exists()


def test_projects_file_alone_can_be_trusted_and_founds_nothing(machine: Machine) -> None:
    project_file(machine).write_text("# \u202ered\n" + EVIL, "utf-8")
    done = machine.succeed("trust", str(machine.project), "--yes")
    assert "\u202e" not in done.stdout and "evil" in done.stdout
    assert [one.name for one in project_file(machine).parent.iterdir()] == ["config.toml"]
    assert "evil" in machine.succeed("models").stdout


def test_demo_and_recordings_take_no_key_and_no_file(machine: Machine, tmp_path: Path) -> None:
    recording = tmp_path / "robot.jsonl"
    recording.write_text(json.dumps({"at_ms": 0, **END}) + "\n")
    configure(machine, scripted(machine, "other", TEXT, END))
    terminal = machine.terminal(
        "serve", "--play", str(recording), env={"ANTHROPIC_API_KEY": "sk-x"}
    )
    terminal.wait_for("Ctrl+C ends it")
    listed = json.loads(machine.succeed("models", "--json").stdout)
    assert [one["name"] for one in listed["models"]] == ["robot"]


KEY = "sk-planted-6b1f0c"
FILE_KEY = "sk-in-a-file-93ac7"
TOKEN = "a-token-of-another-kernel"


def refusal(request: WireRequest) -> WireAnswer:
    """An answer of a provider that repeats the key, as some do in part."""
    message = f"Incorrect API key provided: {request.headers['authorization'].split()[1]}."
    error = {"message": message, "type": "invalid_request_error", "code": "invalid_api_key"}
    return WireAnswer(json.dumps({"error": error}).encode(), 401, JSON)


def files_with(key: str, *folders: Path) -> list[Path]:
    """Every file below folders that holds a key, databases and their logs included."""
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and key.encode() in path.read_bytes()
    ]


def command_lines() -> Iterator[bytes]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                yield (folder / "cmdline").read_bytes()
            except OSError:
                continue


async def test_key_is_sent_to_its_provider_and_is_nowhere_else(machine: Machine) -> None:
    machine.forks = False
    key_file = machine.home / "outside" / "key"
    key_file.parent.mkdir()
    key_file.write_text(FILE_KEY + "\n")
    key_file.chmod(0o600)
    said = ""

    def run(*arguments: str, env: Mapping[str, str] | None = None) -> int:
        nonlocal said
        done = machine.run(*arguments, env=env)
        said += done.stdout + done.stderr
        return done.returncode

    async with WireServer() as server:
        server.reply = refusal
        configure(
            machine,
            wired(server, "first", 'key_env = "MY_KEY"'),
            wired(server, "second", f'key_file = "{key_file}"'),
        )
        env = {"MY_KEY": KEY, "ANTIPHON_TOKEN": TOKEN}
        first = await asyncio.to_thread(run, "run", "@first Hello.", env=env)
        machine.forks = True
        second = await asyncio.to_thread(run, "run", "@second Hello.", "--output", "json")
        assert (first, second) == (ExitCode.FAILED, ExitCode.FAILED)
        asked = [one.headers["authorization"] for one in server.requests]
        assert asked == [f"Bearer {KEY}", f"Bearer {FILE_KEY}"]
        assert await asyncio.to_thread(run, "models", "--check") == ExitCode.FAILED
        assert "MY_KEY" in said and str(key_file) in said
        # No command is run with it, and none finds it in the kernel's process.
        (kernel,) = running_kernels()
        begun_with = Path(f"/proc/{kernel.pid}/environ")
        if begun_with.exists():
            environment = begun_with.read_bytes()
            assert os.fsencode(str(machine.home)) in environment
            assert KEY.encode() not in environment and TOKEN.encode() not in environment
        shell = 'env; cat "/proc/$PPID/environ"; true'
        call = json.dumps({"command": shell, "wait": True})
        assert await asyncio.to_thread(run, "call", "shell.run", call) == 0
        for command in (
            ("models", "--json"),
            ("export",),
            ("export", "--format", "markdown"),
            ("layout",),
            ("log",),
            ("call", "context.request", '{"model": "first"}'),
            ("call", "block.list"),
        ):
            assert await asyncio.to_thread(run, *command) == 0, command
        shown = "\n".join(command.decode("utf-8", "replace") for command in command_lines())
    for key in (KEY, FILE_KEY):
        assert key not in said
        assert key not in shown
    machine.close()
    places = [machine.project, *(machine.home / one for one in ("config", "state", "data", "tmp"))]
    assert files_with("Hello.", *places), "the search finds what is there"
    assert [files_with(key, *places) for key in (KEY, FILE_KEY)] == [[], []]
