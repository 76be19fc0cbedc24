"""Keys of providers: from the environment to the provider, and nowhere else."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from antiphon_kernel.client.discovery import running_kernels
from antiphon_kernel.types.constants import ExitCode
from tests.e2e.machine import Machine
from tests.e2e.test_run import configure, wired
from tests.wire.server import JSON, WireAnswer, WireServer

KEY = "sk-planted-6b1f0c"
FILE_KEY = "sk-in-a-file-93ac7"


def refusal(key: str) -> WireAnswer:
    """An answer of a provider that repeats the key, as some do in part."""
    message = f"Incorrect API key provided: {key}."
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
        server.answers += [refusal(KEY), refusal(FILE_KEY), refusal(KEY), refusal(FILE_KEY)]
        configure(
            machine,
            wired(server, "first", 'key_env = "MY_KEY"'),
            wired(server, "second", f'key_file = "{key_file}"'),
        )
        first = await asyncio.to_thread(run, "run", "@first Hello.", env={"MY_KEY": KEY})
        second = await asyncio.to_thread(run, "run", "@second Hello.", "--output", "json")
        assert (first, second) == (ExitCode.FAILED, ExitCode.FAILED)
        asked = [one.headers["authorization"] for one in server.requests]
        assert asked == [f"Bearer {KEY}", f"Bearer {FILE_KEY}"]
        assert await asyncio.to_thread(run, "models", "--check") == ExitCode.FAILED
        assert "MY_KEY" in said and str(key_file) in said
        # No command is run with it, and none finds it in the kernel's process.
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


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only where /proc is")
def test_kernel_process_shows_no_key(machine: Machine) -> None:
    machine.succeed("models", env={"ANTHROPIC_API_KEY": KEY, "GOOGLE_API_KEY": FILE_KEY})
    (kernel,) = running_kernels()
    environment = Path(f"/proc/{kernel.pid}/environ").read_bytes()
    assert os.fsencode(str(machine.home)) in environment
    assert KEY.encode() not in environment and FILE_KEY.encode() not in environment
