"""Data folders that came from elsewhere: nothing in them is believed before their user says so."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from antiphon_kernel.client.address import lock_holder
from antiphon_kernel.types.constants import ExitCode
from tests.e2e.machine import ANTIPHON, Machine
from tests.waiting import wait_until

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="a second user takes root")

COMMANDS = [
    ("call", "session.whoami"),
    ("send",),
    ("run", "x"),
    ("models",),
    ("tail",),
    ("export",),
    ("doctor",),
    ("invite", "--role", "viewer"),
]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server of an attacker, which notices every connection."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that other users get to; every run of pytest takes them its own folders away."""
    with tempfile.TemporaryDirectory() as folder:
        for path in (Path(folder), *Path(folder).parents):
            if not path.stat().st_mode & 0o001:
                path.chmod(path.stat().st_mode | 0o055)
        yield Path(folder)


def was_visited(listener: socket.socket) -> bool:
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def plant(data: Path, host: str) -> None:
    """Write `kernel.json` as an attacker would put it into a repository."""
    data.mkdir(parents=True, exist_ok=True)
    address = {"pid": 1, "kernel": "x", "token": "t"}
    address |= {"sync": f"ws://{host}/sync", "http": f"http://{host}"}
    (data / "kernel.json").write_text(json.dumps(address))


def test_cloned_data_folder_gets_no_connection_and_no_word(
    machine: Machine, listener: socket.socket
) -> None:
    clone = machine.home / "clone"
    for command, host in zip(COMMANDS, cycle(("0.0.0.0", "127.0.0.1"))):
        plant(clone / ".antiphon", f"{host}:{listener.getsockname()[1]}")
        done = machine.run(*command, stdin="secret", cwd=clone)
        assert done.returncode == ExitCode.UNTRUSTED_FOLDER, done.stderr
        assert f"antiphon trust {clone}" in done.stderr
    terminal = machine.terminal(cwd=clone)
    terminal.wait_for("antiphon trust")
    assert not was_visited(listener)
    assert sorted(path.name for path in (clone / ".antiphon").iterdir()) == ["kernel.json"]


def test_own_data_folder_with_a_planted_address_starts_a_kernel_of_its_own(
    machine: Machine, listener: socket.socket
) -> None:
    data = machine.data
    machine.call(data, "session.whoami")
    for host in ("0.0.0.0", "127.0.0.1"):
        os.kill(machine.kernel().pid, signal.SIGKILL)
        (data / "kernel.json").unlink(missing_ok=True)
        plant(data, f"{host}:{listener.getsockname()[1]}")
        (data / "kernel.json").chmod(0o600)
        again = machine.succeed("call", "session.whoami", "--data", str(data))
        assert json.loads(again.stdout)["role"] == "owner", host
        assert not was_visited(listener), host


def test_trust_says_what_a_folder_holds_and_opens_it_from_then_on(machine: Machine) -> None:
    machine.succeed("invite", "--role", "editor", "--name", "mallory")
    clone = machine.home / "clone"
    clone.mkdir()
    machine.end_kernel()
    no_socket = shutil.ignore_patterns("kernel.sock")
    shutil.copytree(machine.data, clone / ".antiphon", ignore=no_socket)
    assert machine.run("call", "context.list", cwd=clone).returncode == ExitCode.UNTRUSTED_FOLDER
    nothing = machine.run("trust", str(machine.home / "nowhere"), "--yes")
    assert nothing.returncode == 1 and "nothing to trust" in nothing.stderr
    unasked = machine.run("trust", str(clone))
    assert unasked.returncode == ExitCode.USAGE
    done = machine.succeed("trust", str(clone), "--yes")
    for word in ("mallory", "editor", "default", "invitations still valid (1)"):
        assert word in done.stdout
    assert machine.run("call", "context.list", cwd=clone).returncode == 0
    again = machine.run("trust", str(clone))
    assert again.returncode == 0 and "already" in again.stdout


PLANT = """
import fcntl, os, sys, time
data, port = sys.argv[1], sys.argv[2]
os.setgid({nobody}); os.setuid({nobody})
lock = os.open(data + "/kernel.lock", os.O_RDWR | os.O_CREAT, 0o666)
fcntl.flock(lock, fcntl.LOCK_EX)
os.pwrite(lock, f"{{os.getpid()}}\\n".encode(), 0)
with open(data + "/kernel.json", "w") as file:
    file.write('{{"pid": %d, "kernel": "x", "sync": "ws://127.0.0.1:%s/sync",'
               ' "http": "http://127.0.0.1:%s", "token": "t"}}' % (os.getpid(), port, port))
print("planted", flush=True)
sys.stdin.read()
"""


@as_root
def test_folder_of_another_user_gets_no_connection_and_runs_nothing(
    reachable: Path, machine: Machine, listener: socket.socket
) -> None:
    """Another user has served there once, made a friend owner, and opened the folder to all."""
    shared = reachable / "shared"
    (shared / "sub").mkdir(parents=True)
    machine.call(shared / ".antiphon", "session.whoami")
    machine.call(shared / ".antiphon", "kernel.invite", role="editor", name="mallory")
    machine.call(shared / ".antiphon", "kernel.role", principal="mallory", role="owner")
    machine.close()
    data = shared / ".antiphon"
    for path in (shared, data, *data.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    data.chmod(0o777)
    before = sorted(path.name for path in data.iterdir())
    port = str(listener.getsockname()[1])
    code = [sys.executable, "-c", PLANT.format(nobody=NOBODY), str(data), port]
    with subprocess.Popen(
        code, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as attacker:
        assert attacker.stdout is not None and attacker.stdin is not None
        assert attacker.stdout.readline() == "planted\n"
        for folder, arguments in ((shared, ()), (shared / "sub", ("--data", str(data)))):
            done = machine.run("call", "session.whoami", *arguments, cwd=folder)
            assert done.returncode == ExitCode.UNTRUSTED_FOLDER, done.stderr
            assert f"belongs to user {NOBODY}" in done.stderr
        forced = machine.run("trust", str(shared), "--yes")
        assert forced.returncode == ExitCode.UNTRUSTED_FOLDER
        # From below, the folder of another user is not even found.
        machine.succeed("call", "session.whoami", cwd=shared / "sub")
        assert (shared / "sub" / ".antiphon").is_dir()
        attacker.stdin.close()
    assert not was_visited(listener)
    after = {path.name for path in data.iterdir()} - {"kernel.lock", "kernel.json"}
    assert after <= set(before)


@pytest.mark.parametrize("command", ["call session.whoami", "doctor --env"])
def test_module_in_a_projects_folder_takes_the_place_of_none_of_ours(
    machine: Machine, command: str
) -> None:
    has_run = machine.home / "has run"
    for name in ("antiphon_kernel", "asyncio", "sitecustomize"):
        text = f"open({str(has_run)!r}, 'w').write({name!r})\n"
        (machine.project / f"{name}.py").write_text(text)
    machine.forks = False
    machine.run(*command.split())
    assert not has_run.exists(), has_run.read_text()


def test_data_folder_of_the_environment_is_used_by_commands(machine: Machine) -> None:
    data = machine.home / "named"
    machine.succeed("call", "session.whoami", env={"ANTIPHON_DATA": str(data)})
    assert (data / "journal.db").is_file() and not machine.data.exists()
    machine.succeed("call", "session.whoami", env={"ANTIPHON_DATA": ""})
    assert machine.data.is_dir()


def test_home_that_cannot_be_written_to_keeps_no_kernel_from_starting(machine: Machine) -> None:
    env = {"HOME": "/dev/null", "XDG_STATE_HOME": "/dev/null/state"}
    data = machine.home / "kernels-data"
    done = machine.succeed("call", "session.whoami", "--data", str(data), env=env)
    assert "cannot be remembered" in done.stderr
    pid = int((data / "kernel.lock").read_text())
    os.kill(pid, signal.SIGTERM)


def test_files_are_this_users_alone_in_a_folder_that_others_read(machine: Machine) -> None:
    data = machine.home / "kernels-data"
    data.mkdir(0o755)
    data.chmod(0o755)
    machine.call(data, "session.whoami")
    machine.close()
    (data / "journal.db").chmod(0o644)
    machine.call(data, "session.whoami")
    assert machine.run("backup", str(machine.home / "b.db"), "--data", str(data)).returncode == 0
    files = [path for path in (*data.iterdir(), machine.home / "b.db") if path.is_file()]
    open_to_others = {path.name for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077}
    assert open_to_others == set()


def test_backup_that_finds_no_room_says_that_it_could_not_be_written(machine: Machine) -> None:
    long = json.dumps({"role": "user", "kind": "text", "content": "x" * 200_000})
    assert machine.run("call", "block.create", "-", stdin=long).returncode == 0

    target = machine.home / "backup.db"
    small_files = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))"
    done = machine.run_program([ANTIPHON, "backup", str(target)], b"", before=small_files)
    assert done.returncode == 1
    assert f"The backup {target} could not be written" in done.stderr
    assert not target.exists()


@as_root
@pytest.mark.parametrize("in_the_log", [True, False])
def test_journal_in_a_folder_that_cannot_be_written_to_is_read(
    reachable: Path, machine: Machine, in_the_log: bool
) -> None:
    data = reachable / "kernels-data"
    machine.call(data, "block.create", role="user", kind="text", content="there", status="done")
    pid = int((data / "kernel.lock").read_text())
    os.kill(pid, signal.SIGKILL if in_the_log else signal.SIGTERM)
    wait_until(lambda: lock_holder(data) is None, "the kernel has ended")
    wal = data / "journal.db-wal"
    assert (wal.exists() and wal.stat().st_size > 0) is in_the_log
    state = reachable / "nobodys"
    tmp = reachable / "tmp-of-nobody"
    for folder in (state, tmp):
        folder.mkdir()
    for path in (*data.iterdir(), data, state, tmp):
        os.chown(path, NOBODY, NOBODY)
    env = {"XDG_STATE_HOME": str(state), "TMPDIR": str(tmp), "HOME": str(state)}

    def as_nobody(*arguments: str) -> subprocess.CompletedProcess[str]:
        # What is imported later may be out of reach.
        nobody = f"os.setgid({NOBODY}); os.setuid({NOBODY})"
        command = [sys.executable, "-m", "antiphon_kernel", arguments[0], "--data", str(data)]
        return machine.run_program([*command, *arguments[1:]], b"", env, before=nobody)

    trusted = as_nobody("trust", "--yes")
    assert trusted.returncode == 0, trusted.stderr
    data.chmod(0o500)
    for path in data.iterdir():
        path.chmod(0o400)
    told = as_nobody("log")
    assert told.returncode == 0, told.stderr
    assert "block.create" in told.stdout or "create" in told.stdout
    checked = as_nobody("doctor")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    kept = as_nobody("backup", str(tmp / "b.db"))
    assert kept.returncode == 0, kept.stderr
