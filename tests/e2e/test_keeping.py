"""`antiphon backup`, `restore`, `export`, `import`, `doctor` and `log`, as somebody uses them."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.messages import (
    ImportedConversation,
    TextBlock,
    UserMessage,
    read_conversations,
)
from tests.e2e.machine import ANTIPHON, Machine
from tests.e2e.sharing import message
from tests.fork_server import start_process
from tests.kernel.messages.test_foreign_conversations import ANTHROPIC, TREE

TEXT = "naïve 👩‍👩‍👧 日本語\r\nand a second line\n"
FIELDS = [{"name": "count", "field_type": "counter"}, {"name": "notes", "field_type": "text"}]


@pytest.fixture
def data(machine: Machine) -> Path:
    return machine.data


@pytest.fixture
def block(machine: Machine, data: Path) -> str:
    """A text that two have written; beside it a map, in the default context."""
    made = machine.call(data, "block.create", role="user", kind="text", content=TEXT, status="done")
    block = str(made["block_id"])
    splice = {"block_id": block, "offset": 0, "insert": "very "}
    machine.succeed("call", "block.splice", json.dumps(splice), "--as", "bo")
    schema = {"type": "map", "fields": FIELDS}
    content = {"notes": "in a field"}
    machine.call(data, "block.create", role="user", kind="text", schema=schema, content=content)
    return block


def contents(machine: Machine, data: Path, context: str = "default") -> list[Any]:
    """Everything of a context that an import keeps: of its blocks and of who wrote them."""
    found = []
    for one in machine.call(data, "block.list", context=context, limit=100)["blocks"]:
        whole = machine.call(data, "block.get", block_id=one["block_id"])
        entry = {"value": whole["value"]}
        entry |= {name: one.get(name) for name in ("role", "kind", "status", "length")}
        if one["block_id"].endswith(".1"):
            blame = machine.call(data, "block.blame", block_id=one["block_id"])["runs"]
            entry["blame"] = [(run["start"], run["end"], run["username"]) for run in blame]
        found.append(entry)
    return found


def test_backup_is_restored_as_it_was_once_no_kernel_runs(
    machine: Machine, data: Path, block: str, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.db"
    done = machine.succeed("backup", str(backup), "--json")
    assert json.loads(done.stdout)["bytes"] == backup.stat().st_size
    assert machine.run("backup", str(backup)).returncode == 1
    before = contents(machine, data)
    assert machine.run("restore", str(backup)).returncode == 4
    machine.call(data, "block.create", **message("later"))
    machine.end_kernel()
    told = json.loads(machine.succeed("restore", str(backup), "--json").stdout)
    assert (told["contexts"], told["damaged"]) == (1, [])
    assert Path(told["before"]).exists()
    assert machine.run("doctor").returncode == 0
    assert contents(machine, data) == before


def test_export_is_imported_into_another_kernel_as_it_was(
    machine: Machine, data: Path, block: str, tmp_path: Path
) -> None:
    exported = machine.succeed("export", "--format", "jsonl")
    assert len(exported.stdout.splitlines()) >= 5
    file = tmp_path / "context.jsonl"
    file.write_bytes(exported.stdout.encode())
    before = contents(machine, data)
    assert before[0]["blame"][0] == (0, 5, "bo")
    assert before[0]["value"] == "very " + TEXT
    assert before[1]["value"]["notes"] == "in a field"

    other = tmp_path / "other"
    done = machine.succeed("import", str(file), "--data", str(other), "--label", "taken", "--json")
    assert json.loads(done.stdout)["blocks"] == 2
    assert contents(machine, other, "taken") == before
    again = machine.run("export", "taken", "--data", str(other))
    versions = [json.loads(line).get("text") for line in again.stdout.splitlines()]
    assert versions == [json.loads(line).get("text") for line in exported.stdout.splitlines()]
    assert machine.run("doctor", "--data", str(other)).returncode == 0

    twice = machine.run("import", str(file), "--data", str(other), "--label", "taken")
    assert twice.returncode == 1
    file.write_text("{broken\n")
    assert machine.run("import", str(file), "--data", str(other)).returncode == 1
    markdown = machine.run("export", "--format", "markdown")
    assert "very naïve" in markdown.stdout


def test_export_of_a_kernel_that_dies_fails_and_is_not_imported(
    machine: Machine, data: Path, tmp_path: Path
) -> None:
    for _ in range(4):
        machine.run("send", stdin=b"x" * 3_000_000)
    command = [ANTIPHON, "export"]
    with start_process(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=machine.env,
        cwd=machine.project,
    ) as exporting:
        assert exporting.stdout is not None and exporting.stderr is not None
        text = exporting.stdout.read(1_000_000)
        os.kill(machine.kernel().pid, signal.SIGKILL)
        text += exporting.stdout.read()
        assert "before the export was whole" in exporting.stderr.read().decode()
    assert exporting.returncode == 3
    done = machine.run(
        "import", "-", "--label", "half", "--data", str(tmp_path / "new"), stdin=text
    )
    assert done.returncode == 1
    assert "Nothing was imported" in done.stderr


def test_doctor_says_by_its_exit_code_whether_all_is_well(
    machine: Machine, data: Path, block: str
) -> None:
    well = machine.run("doctor")
    assert (well.returncode, well.stderr) == (0, "")
    assert well.stdout.endswith("all is well.\n")
    machine.end_kernel()
    with sqlite3.connect(data / "journal.db") as database:
        database.execute("UPDATE blocks SET version = 99 WHERE number = 1")
    database.close()
    ill = machine.run("doctor", "--json")
    assert ill.returncode == 1
    report = json.loads(ill.stdout)
    assert not report["clean"]
    assert {finding["check"] for finding in report["findings"]} == {"versions"}
    assert "version 99" in machine.run("doctor").stdout
    nowhere = machine.run("doctor", "--data", str(data / "nowhere"))
    assert nowhere.returncode == 1
    assert "--data" in nowhere.stderr


def test_log_has_a_line_for_whoever_joined_wrote_and_ran_something(
    machine: Machine, data: Path, block: str
) -> None:
    machine.call(data, "shell.run", command="echo 'hi there'")
    done = machine.succeed("log", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)
    joined = {event["principal"] for event in events if event["event"] == "joined"}
    assert "bo" in joined
    wrote = [event for event in events if event["event"] == "wrote"]
    assert [one["blocks"] for one in wrote if one["what"] == "splice"] == [[event_id(wrote)]]
    ran = [event["what"] for event in events if event["event"] == "ran"]
    assert ran == ["echo 'hi there'"]
    lines = machine.run("log", "--limit", "3").stdout.splitlines()
    assert len(lines) == 3
    nowhere = machine.run("log", "--context", "attic", "--json")
    assert nowhere.returncode == 1
    assert json.loads(nowhere.stdout)["error"]["code"] == "context_not_found"
    # In a journal that others have written, names may hold anything.
    machine.close()
    with sqlite3.connect(data / "journal.db") as journal:
        journal.execute(
            "UPDATE contexts SET label = 'a' || char(10) || '2026 amy owns' || char(13)"
        )
        journal.execute("UPDATE principals SET username = username || char(10, 8232) || 'c'")
    journal.close()
    entries = machine.succeed("log", "--json").stdout.splitlines()
    assert len(machine.succeed("log").stdout.splitlines()) == len(entries)


def event_id(wrote: list[dict[str, Any]]) -> str:
    """The first block that was created."""
    created = next(event for event in wrote if event["what"] == "create")
    return str(created["blocks"][0])


def test_restore_with_open_app_notifies_keeps_text_and_rejoins(machine: Machine) -> None:
    data = machine.data
    machine.call(data, "block.create", **message("some text"))
    backup = machine.home / "backup.db"
    assert machine.run("backup", str(backup)).returncode == 0
    terminal = machine.terminal("join", cols=120, rows=40)
    terminal.wait_for("some text")
    terminal.wait_for("live")
    terminal.press("up", "enter")
    terminal.wait_for("EDIT")
    machine.end_kernel()
    terminal.wait_for("offline")
    terminal.type("never sent ")
    terminal.wait_for("never sent some text")
    assert machine.run("restore", str(backup)).returncode == 0
    machine.call(data, "session.whoami")
    terminal.wait_for("This document was restored")
    terminal.wait_for("refused: ")
    (kept,) = machine.home.rglob("refused/*.md")
    assert "never sent " in kept.read_text()
    terminal.press("ctrl+p")
    terminal.type("join again")
    terminal.wait_for(lambda text: bool(re.search(r"Join again *$", text, re.MULTILINE)))
    terminal.press("enter")
    terminal.wait_for("live")
    terminal.wait_for(lambda text: "some text" in text and "never sent" not in text)
    terminal.type("hello again")
    terminal.wait_for("hello again")


MORE = {"role": "user", "content": "And then?"}


def exported(machine: Machine, label: str, *options: str) -> ImportedConversation:
    done = machine.succeed("export", label, "--format", "messages", *options)
    (conversation,) = read_conversations(done.stdout)
    return conversation


def test_conversations_of_other_tools_are_imported_shown_continued_and_exported(
    machine: Machine, tmp_path: Path
) -> None:
    file = tmp_path / "conversation.json"
    file.write_text(json.dumps(ANTHROPIC))
    (before,) = read_conversations(file.read_text())
    done = machine.succeed("import", "--format", "messages", str(file), "--label", "chat")
    assert done.stdout.startswith("chat: ")
    shown = machine.succeed("export", "chat", "--format", "markdown").stdout
    assert all(
        block.text in shown
        for one in before.messages
        for block in one.message.content
        if isinstance(block, TextBlock)
    )
    found = json.loads(machine.succeed("call", "message.path", "--context", "chat").stdout)
    params = json.dumps({"parent": found["messages"][-1]["message_id"], "messages": [MORE]})
    machine.succeed("call", "message.append", params)
    for shape in ("openai", "anthropic"):
        after = exported(machine, "chat", "--shape", shape)
        *same, added = after.messages
        assert (tuple(same), after.files) == (before.messages, before.files)
        assert (after.extra, added.message) == (
            before.extra,
            UserMessage((TextBlock("And then?"),)),
        )

    folder = tmp_path / "loom"
    for path, text in TREE.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    done = machine.succeed("import", "--format", "messages", str(folder), "--label", "loom")
    assert done.stdout.startswith("loom: ") and "in 2 branches" in done.stdout
    broken = machine.run("import", "--format", "messages", "-", "--json", stdin="{broken")
    assert broken.returncode == 1 and "error" in json.loads(broken.stdout)
    assert machine.run("doctor").returncode == 0
