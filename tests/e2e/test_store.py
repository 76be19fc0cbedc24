"""The commands about what is kept, with a database in the place of a data folder."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.machine import ANTIPHON, Machine
from tests.e2e.sharing import message

SECRET = "a-password"


@pytest.fixture
def with_password(store: str) -> str:
    """The URL of the test's database with a password in it, which the server does not ask for."""
    return store.replace("postgres@", f"postgres:{SECRET}@", 1)


def test_folder_is_moved_into_a_database_used_there_and_moved_back(
    machine: Machine, store: str, with_password: str, tmp_path: Path
) -> None:
    shared = {"ANTIPHON_STORE": with_password}
    machine.call(machine.data, "block.create", **message("some text"))
    running = machine.run("move", "--to", store)
    assert (running.returncode, "kernel already serves" in running.stderr) == (4, True)
    machine.end_kernel()
    done = machine.succeed("move", "--to", store, "--json")
    assert json.loads(done.stdout)["rows"] > 5

    made = machine.succeed("call", "block.create", json.dumps(message("more")), env=shared)
    assert json.loads(made.stdout)["version"] == 1
    run = {"command": "printenv ANTIPHON_STORE || echo it is hidden"}
    machine.succeed("call", "shell.run", json.dumps(run), env=shared)
    shown = machine.succeed("export", "--format", "markdown", env=shared).stdout
    assert "it is hidden\n" in shown and SECRET not in shown
    for command in (["doctor"], ["doctor", "--store", store]):
        assert machine.succeed(*command, env=shared).stdout.endswith("all is well.\n")
    log = machine.succeed("log", "--store", store).stdout.splitlines()
    assert sum("ran in default printenv" in line for line in log) == 1
    backup = tmp_path / "backup.db"
    machine.succeed("backup", str(backup), env=shared)
    running = machine.run("move", "--from", store, "--to", str(tmp_path / "back"))
    assert (running.returncode, "Kernels run" in running.stderr) == (1, True)
    machine.end_kernel()
    filled = machine.run("restore", str(backup), env=shared)
    assert (filled.returncode, "not empty" in filled.stderr) == (1, True)
    machine.succeed("move", "--from", store, "--to", str(tmp_path / "back"))
    assert machine.succeed("doctor", "--data", str(tmp_path / "back")).stdout.endswith(
        "all is well.\n"
    )


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"postgresql://amy:{SECRET}@127.0.0.1:1/none", "127.0.0.1:1/none"),
        (f"postgresql://amy:{SECRET}/@127.0.0.1/none", "URL of the store cannot be read"),
        (f"postgresql://amy:a@{SECRET}@127.0.0.1/none", "URL of the store cannot be read"),
    ],
)
def test_database_that_cannot_be_reached_is_named_without_its_password(
    machine: Machine, url: str, said: str
) -> None:
    assert urlsplit(url).scheme == "postgresql"
    for command in (["doctor"], ["log"], ["backup", "new.db"], ["restore", "README.md"]):
        done = machine.run(*command, env={"ANTIPHON_STORE": url})
        assert done.returncode == 1, command
        assert done.stderr.startswith("antiphon: ") and SECRET not in done.stdout + done.stderr
        assert said in done.stderr or command[0] == "restore"
    for command in (["move", "--to"], ["move", "--to=x", "--from"], ["doctor", "--store"]):
        done = machine.run(*command, url)
        assert done.returncode in (1, 2) and SECRET not in done.stdout + done.stderr


def test_move_with_wrong_arguments_or_a_full_output_says_so(
    machine: Machine, store: str, tmp_path: Path
) -> None:
    for arguments in (["--to", str(tmp_path)], ["--from", "x", "--to", str(tmp_path)]):
        done = machine.run("move", *arguments)
        assert (done.returncode, "postgresql://" in done.stderr) == (2, True)
    machine.call(machine.data, "block.create", **message("some text"))
    machine.end_kernel()
    line = 'exec "$0" move --to "$1" > /dev/full'
    done = machine.run_program(["/bin/sh", "-c", line, ANTIPHON, store], b"")
    assert done.returncode == 1
    assert done.stderr.endswith(
        "antiphon: cannot write to standard output: No space left on device\n"
    )
