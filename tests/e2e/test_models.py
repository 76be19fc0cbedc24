"""`antiphon models`, and configuration files of projects that have to be trusted."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from antiphon_kernel.config import NO_MODEL
from antiphon_kernel.providers import ModelKind
from antiphon_kernel.types.constants import ExitCode
from tests.e2e.machine import Machine
from tests.e2e.test_run import END, TEXT, configure, scripted, wired
from tests.wire.answering import Said, answer
from tests.wire.server import WireServer

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
    assert "\n    tools: block_read, block_edit, block_search, shell\n" in done.stdout
    assert "config.toml:7: [models.bad]" in done.stderr
    listed = json.loads(machine.succeed("models", "--json").stdout)
    assert [one["name"] for one in listed["models"]] == ["robot", "small", "claude"]
    assert [one["line"] for one in listed["problems"]] == [7]
    log = (machine.project / ".antiphon" / "kernel.log").read_text("utf-8")
    assert "config.toml:7: [models.bad]" in log


async def test_check_asks_each_model_for_a_few_tokens(machine: Machine) -> None:
    async with WireServer() as server:
        server.answers.append(answer(ModelKind.OPENAI_CHAT, Said("OK.")))
        configure(machine, wired(server), scripted(machine, "robot", TEXT, END))
        done = await asyncio.to_thread(machine.run, "models", "--check", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["checked"] == [
            {"name": "wired", "ok": True},
            {"name": "robot", "ok": True},
        ]
        body = server.requests[0].body
        assert 1 <= (body.get("max_tokens") or body["max_completion_tokens"]) <= 16
        failed = await asyncio.to_thread(machine.run, "models", "--check")
    assert failed.returncode == ExitCode.FAILED
    assert "the test has no answer" in failed.stdout


def test_projects_file_counts_once_it_is_trusted_as_it_is(machine: Machine) -> None:
    project_file(machine).write_text(EVIL, "utf-8")
    done = machine.succeed("models")
    assert done.stdout.strip() == NO_MODEL
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
