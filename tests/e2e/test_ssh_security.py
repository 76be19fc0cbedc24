"""Rights and limits of a guest over SSH, tested with the real OpenSSH client."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sqlite3
import stat
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from asyncssh.packet import String, UInt32

from antiphon.hosts.guest_processes import GuestProcesses
from antiphon.hosts.host_address import HostOptions
from antiphon.hosts.kernel_link import KernelLink
from antiphon.hosts.session import SessionContext
from antiphon.ssh.server import listen
from tests.e2e.sharing import (
    KEYGEN,
    NO_CHECKS,
    SSH,
    SharedProject,
    message,
    needs_openssh,
)
from tests.kernel.served import ServedKernel, served_kernel
from tests.processes import memory_of
from tests.waiting import PATIENCE, wait_until

pytestmark = needs_openssh

PASTED_MEGABYTES = 100 if os.environ.get("ANTIPHON_LONG") else 12

DENIED = "Permission denied (publickey)."


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedProject]:
    one = SharedProject(tmp_path_factory.mktemp("shared"))
    one.let_in("ed")
    one.let_in("vera", "viewer")
    yield one
    one.close()


def test_unknown_key_is_refused_like_a_password(project: SharedProject) -> None:
    project.key("eve")
    for options in (
        (),
        ("-oPubkeyAuthentication=no", "-oBatchMode=yes"),
        ("-oPreferredAuthentications=password,keyboard-interactive", "-oNumberOfPasswordPrompts=1"),
    ):
        done = project.guest("eve", *options, "tail")
        assert (done.returncode, done.stdout) == (255, "")
        assert DENIED in done.stderr, options


def test_user_name_of_the_line_is_no_claim_of_identity(project: SharedProject) -> None:
    assert project.guest("ed", "send", stdin=b"from whom?", user="vera").returncode == 0
    (*_, last) = project.tool("block.list")["blocks"]
    people = {
        one["principal"]: one["username"] for one in project.tool("kernel.members")["members"]
    }
    assert people[last["author"]] == "ed"
    assert project.guest("vera", "send", stdin=b"x", user="ed").returncode == 1


def test_certificate_lets_nobody_in(project: SharedProject) -> None:
    authority, key = project.key("authority"), project.key("carl")
    sign = ["ssh-keygen", "-q", "-s", str(authority), "-I", "carl", "-n", "ed,carl"]
    subprocess.run([*sign, f"{key}.pub"], check=True, capture_output=True)
    assert DENIED in project.guest("carl", f"-oCertificateFile={key}-cert.pub", "tail").stderr
    project.let_in("carl")
    done = project.guest("carl", f"-oCertificateFile={key}-cert.pub", "export")
    assert done.returncode == 0


def test_revoked_key_ends_the_session_and_lets_nobody_in(project: SharedProject) -> None:
    project.let_in("gus")
    with project.guest_terminal("gus") as terminal:
        terminal.wait_for("WRITE")
        project.tool("key.revoke", principal="gus")
        assert terminal.wait_for_end() == 1
        assert "revoked the key" in terminal.text
    assert DENIED in project.guest("gus", "tail").stderr


def test_viewer_reads_and_writes_nothing_by_any_verb(project: SharedProject) -> None:
    project.tool("block.create", **message("for all to read"))
    assert "for all to read" in project.guest("vera", "export", "--format", "markdown").stdout
    refused = project.guest("vera", "send", stdin=b"from a viewer")
    assert refused.returncode == 1 and "viewer" in refused.stderr
    acting = project.guest("vera", "send --as ed", stdin=b"from a viewer")
    assert acting.returncode != 0
    with project.guest_terminal("vera") as terminal:
        terminal.wait_for("for all to read")
        terminal.wait_for("viewer")
        terminal.type("x")
        terminal.wait_for("You are a viewer")
    assert "from a viewer" not in project.guest("vera", "export").stdout


COMMANDS = (
    "ls",
    "sh -c id",
    "antiphon",
    "antiphon serve",
    "antiphon --linear",
    "tail --linear",
    "call block.list",
    "join",
    "share --list",
    "tail --data /tmp",
    "export --url ws://127.0.0.1:1/sync",
    "send --as vera",
    "import /etc/passwd",
    "tail 'unfinished",
    "scp -f /etc/passwd",
    "rsync --server . .",
)


def test_exec_of_anything_but_three_commands_is_refused_and_no_shell_reads_it(
    project: SharedProject, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    for command in (*COMMANDS, f"export; touch {made}", f"export $(touch {made})"):
        done = project.guest("ed", command, stdin=b"x")
        assert done.returncode in (1, 2), command
        assert done.stdout == "" and done.stderr.startswith(("antiphon: ", "Usage: ")), command
    assert not made.exists()
    done = project.guest("ed", "-T")
    assert done.returncode == 1
    assert done.stderr == (
        "antiphon: The app needs a terminal: use ssh -t, or run one of the commands tail, send,"
        " export.\n"
    )


def test_subsystem_and_forwardings_of_openssh_are_refused(project: SharedProject) -> None:
    assert "subsystem request failed" in project.guest("ed", "-s", "sftp").stderr
    forwarded = project.guest("ed", "-W127.0.0.1:22", "-oBatchMode=yes")
    assert forwarded.returncode == 255 and "forwarding failed" in forwarded.stderr
    never = project.keys / "never.sock"
    for remote in ("-R0:127.0.0.1:22", f"-R{never}:127.0.0.1:22", "-R0"):
        refused = project.guest("ed", remote, "-oExitOnForwardFailure=yes", "tail")
        assert refused.returncode == 255 and "forward" in refused.stderr, remote
    assert not never.exists()


def test_local_forwardings_of_openssh_reach_nothing(project: SharedProject, tmp_path: Path) -> None:
    with socket.socket() as target, socket.socket() as free:
        target.bind(("127.0.0.1", 0))
        target.listen()
        target.setblocking(False)
        port = target.getsockname()[1]
        free.bind(("127.0.0.1", 0))
        dynamic = free.getsockname()[1]
        free.close()
        to_port, to_socket = tmp_path / "to_port", tmp_path / "to_socket"
        options = (
            *(f"-L{to_port}:127.0.0.1:{port}", f"-L{to_socket}:{project.data / 'kernel.sock'}"),
            *(f"-D127.0.0.1:{dynamic}", "-N", "-v", "-oExitOnForwardFailure=yes"),
        )
        log = tmp_path / "log"
        with log.open("wb") as file:
            client = subprocess.Popen(project.ssh("ed", *options), stderr=file, env=project.env)
        try:
            wait_until(lambda: "Entering interactive session" in log.read_text(), "ssh -N")
            for path in (to_port, to_socket):
                with socket.socket(socket.AF_UNIX) as one:
                    one.connect(str(path))
                    assert _all_of(one) == b""
            with socket.create_connection(("127.0.0.1", dynamic)) as one:
                one.sendall(b"\x05\x01\x00")
                assert one.recv(2) == b"\x05\x00"
                one.sendall(b"\x05\x01\x00\x01\x7f\x00\x00\x01" + port.to_bytes(2, "big"))
                assert len(_all_of(one)) <= 10  # the client's own answer, and nothing behind it
            assert log.read_text().count("open failed: ") == 3
            with pytest.raises(BlockingIOError):
                target.accept()
        finally:
            client.kill()
            client.wait()


def test_agent_and_screen_of_openssh_are_not_forwarded(
    project: SharedProject, tmp_path: Path
) -> None:
    path = tmp_path / "agent"
    agent = subprocess.Popen(
        ["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL, env=project.env
    )
    try:
        wait_until(path.exists, "the agent")
        command = project.ssh("ed", "-A", "-Y", "-v", "export")
        done = subprocess.run(
            [one.replace("IdentityAgent=none", f"IdentityAgent={path}") for one in command],
            env=project.env | {"DISPLAY": "127.0.0.1:99"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        agent.terminate()
        agent.wait()
    assert "Requesting authentication agent forwarding" in done.stderr
    assert "X11 forwarding request failed" in done.stderr
    assert "client_request_agent" not in done.stderr and "client_request_x11" not in done.stderr


REQUESTS = {
    b"auth-agent-req@openssh.com": b"",
    b"x11-req": bytes(1) + String(b"MIT-MAGIC-COOKIE-1") + String(b"00" * 16) + UInt32(0),
    b"subsystem": String(b"sftp"),
    b"no-such-request": b"",
}
CHANNELS = (b"auth-agent@openssh.com", b"x11", b"forwarded-tcpip", b"no-such-channel")


async def test_every_other_request_channel_and_forwarding_is_refused(
    project: SharedProject,
) -> None:
    async with _connected(project, "ed") as connection:
        session, _ = await connection.create_session(
            asyncssh.SSHClientSession, term_type="xterm", encoding=None
        )
        for name, payload in REQUESTS.items():
            assert not await session._make_request(name, payload), name  # noqa: SLF001
        session.abort()
    for kind in CHANNELS:
        async with _connected(project, "ed") as connection:
            channel = asyncssh.channel.SSHTCPChannel(
                connection, asyncio.get_running_loop(), None, "strict", 2**15, 2**14
            )
            with pytest.raises(asyncssh.ChannelOpenError):
                await channel._open(kind, String(b"127.0.0.1") + UInt32(1))  # noqa: SLF001
    async with _connected(project, "ed") as connection:
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.open_connection("127.0.0.1", project.port)
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.open_unix_connection(str(project.data / "kernel.sock"))
        with pytest.raises(asyncssh.ChannelListenError):
            await connection.forward_remote_port("", 0, "localhost", 1)
        with pytest.raises(asyncssh.ChannelListenError):
            await connection.forward_remote_path("/tmp/never.sock", "/tmp/nowhere.sock")
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.open_tun(0)
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.open_tap(0)
        with pytest.raises(asyncssh.Error):
            await connection.start_sftp_client()


def test_environment_of_the_client_reaches_no_session_and_no_editor_is_started(
    project: SharedProject, tmp_path: Path
) -> None:
    project.tool("block.create", **message("for an editor"))
    made = f"'touch {tmp_path / 'made'}'"
    wanted = (
        "-oSetEnv=NO_COLOR=1 COLORTERM=truecolor LD_PRELOAD=/nowhere ANTIPHON_DATA=/nowhere"
        f" EDITOR={made} VISUAL={made}"
    )
    with project.guest_terminal("ed", wanted, cols=120) as terminal:
        terminal.wait_for("for an editor")
        terminal.wait_for("WRITE")
        assert b"38;2;" in terminal.output  # in colours, and in all of them
        terminal.press("up")
        terminal.wait_for("NAVIGATE")
        terminal.type("E")
        terminal.wait_for("For guests no editor can be started")
        terminal.press("ctrl+z")
        terminal.press("f1")
        terminal.wait_for("Esc closes this page")
    assert not (tmp_path / "made").exists()


TERMINALS = (
    ("\x1b]0;owned\x07", (80, 24)),
    ("../../../../etc/passwd", (80, 24)),
    ("x" * 10_000, (80, 24)),
    ("xterm", (0, 0)),
    ("xterm", (2**32 - 1, 2**32 - 1)),
    ("xterm", (1, 1)),
)


async def test_malicious_terminals_and_half_open_handshakes_harm_nobody(
    project: SharedProject,
) -> None:
    for term, size in TERMINALS:
        async with _connected(project, "ed") as connection:
            process = await connection.create_process(term_type=term, term_size=size, encoding=None)
            drawn = await process.stdout.readuntil(b"\x1b[?1049h")
            assert b"owned" not in drawn
            process.change_terminal_size(2**31, 0)
            process.terminate()
    silent = [socket.create_connection(("127.0.0.1", project.port)) for _ in range(200)]
    assert project.guest("ed", "export").returncode == 0
    for one in silent:
        one.close()


def test_client_that_never_reads_fills_no_memory(project: SharedProject) -> None:
    for _ in range(4):
        project.succeed("send", stdin="y" * 1_000_000)
    before = memory_of(project.host_pid)
    reader = subprocess.Popen(project.ssh("ed", "export"), stdout=subprocess.PIPE, env=project.env)
    stopped = [reader]
    for _ in range(3):
        stopped.append(
            subprocess.Popen(project.ssh("ed", "export"), stdout=subprocess.PIPE, env=project.env)
        )
    wait_until(lambda: len(project.sessions("ed")) >= 4, "four exports that nobody reads")
    assert project.guest("vera", "export").returncode == 0
    assert memory_of(project.host_pid) - before < 12_000_000
    for one in stopped:
        one.kill()
        one.wait()
    wait_until(lambda: not project.sessions("ed"), "the end of their sessions")


def test_many_megabytes_pasted_are_read_to_the_end_and_harm_nobody(project: SharedProject) -> None:
    with project.guest_terminal("ed") as terminal:
        terminal.wait_for("live")
        host, guest = project.host_pid, _process_of(project, "ed")
        before = memory_of(host) + memory_of(guest)
        most = before
        terminal.type("\x1b[200~")
        for _ in range(PASTED_MEGABYTES):
            terminal.type("pasted and pasted \n" * 52_632)
            most = max(most, memory_of(host) + memory_of(guest))
        terminal.type("\x1b[201~")
        terminal.wait_for("Nothing was pasted")
        assert most - before < 24_000_000
        terminal.type("and the next words")
        terminal.wait_for("and the next words")
        assert project.guest("vera", "export").returncode == 0


def test_session_that_is_killed_harms_no_other(project: SharedProject) -> None:
    with project.guest_terminal("ed") as first, project.guest_terminal("vera") as second:
        first.wait_for("WRITE")
        second.wait_for("viewer")
        os.kill(_process_of(project, "ed"), signal.SIGKILL)
        assert first.wait_for_end() == 1
        assert "ended by a failure" in first.text
        project.tool("block.create", **message("the others go on"))
        second.wait_for("the others go on")


def test_host_key_stays_and_is_private(project: SharedProject) -> None:
    before = project.share()["fingerprint"]
    assert stat.S_IMODE((project.data / "ssh.key").stat().st_mode) == 0o600
    project.share("--stop")
    again = project.share()
    assert again["fingerprint"] == before
    project.share("--stop")
    (project.data / "ssh.key").chmod(0o644)
    refused = project.run("share")
    assert refused.returncode == 3 and "Others may read the host key" in refused.stderr
    (project.data / "ssh.key").chmod(0o600)
    project.share()


def test_bind_beyond_loopback_without_keys_is_refused(tmp_path: Path) -> None:
    alone = SharedProject(tmp_path)
    try:
        refused = alone.run("share", "--bind", "0.0.0.0")
        assert refused.returncode == 2 and "nobody's key is known yet" in refused.stderr
        assert not (alone.data / "ssh.json").exists()
    finally:
        alone.close()


def _all_of(one: socket.socket) -> bytes:
    """Return what comes until the other end closes."""
    one.settimeout(PATIENCE)
    pieces = iter(lambda: one.recv(4_096), b"")
    return b"".join(pieces)


def _connected(
    project: SharedProject, name: str
) -> asyncssh.misc._ACMWrapper[asyncssh.SSHClientConnection]:
    return asyncssh.connect(
        "localhost",
        project.port,
        known_hosts=None,
        client_keys=[str(project.key(name))],
        agent_path=None,
        config=None,
    )


def _process_of(project: SharedProject, username: str) -> int:
    """Return a guest's process, once those of the tests before have ended."""
    wait_until(lambda: len(_processes_of(project, username)) == 1, "one process of a guest")
    (pid,) = _processes_of(project, username)
    return pid


def _processes_of(project: SharedProject, username: str) -> list[int]:
    """Return the processes whose working folder is that of a guest."""
    folder = project.data / "ssh-guests" / username
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() == folder:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@dataclass
class Work:
    """Steps that the kernel and the SSH server have taken."""

    statements: list[str] = field(default_factory=list)
    key_operations: list[tuple[str, type]] = field(default_factory=list)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """Count what the real parts do."""
    one, connect = Work(), sqlite3.connect

    def traced(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(one.statements.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    for name in ("sign", "verify"):
        operation = getattr(asyncssh.SSHKey, name)

        @wraps(operation)
        def counted(
            key: asyncssh.SSHKey, *args: Any, name: str = name, operation: Any = operation
        ) -> Any:
            one.key_operations.append((name, type(key)))
            return operation(key, *args)

        monkeypatch.setattr(asyncssh.SSHKey, name, counted)
    return one


@pytest.fixture
async def served(tmp_path: Path, work: Work) -> AsyncIterator[ServedKernel]:
    async with served_kernel(tmp_path) as one:
        yield one


@pytest.fixture
async def port(tmp_path: Path, served: ServedKernel) -> AsyncIterator[int]:
    link = KernelLink(served.locate)
    await link.start()
    context = SessionContext(link, GuestProcesses(), tmp_path / "guests", ask=False)
    listener = await listen(context, HostOptions(kind="ssh", bind="127.0.0.1", port=0))
    yield listener.port
    listener.close()
    await link.close()


def key(folder: Path, name: str) -> Path:
    path = folder / name
    command = [KEYGEN or "", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)]
    subprocess.run(command, check=True)
    return path


async def messages(port: int, private: Path, user: str) -> list[str]:
    """Return the messages of a refusal, as the real client sends and receives them."""
    client = await asyncio.create_subprocess_exec(
        SSH or "",
        *NO_CHECKS,
        *("-vvv", "-o", "UserKnownHostsFile=/dev/null", "-o", "BatchMode=yes"),
        *("-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none", "-i", str(private)),
        *("-p", str(port), f"{user}@127.0.0.1", "export"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    _, told = await client.communicate()
    assert client.returncode == 255 and b"Permission denied (publickey)." in told
    return re.findall(r"(?:send|receive) packet: type \d+", told.decode())


async def test_refusal_takes_the_same_steps_for_known_and_unknown_keys_and_names(
    tmp_path: Path, served: ServedKernel, port: int, work: Work
) -> None:
    revoked, unknown = key(tmp_path, "revoked"), key(tmp_path, "unknown")
    line = Path(f"{revoked}.pub").read_text()
    added = await served.call("key.add", key=line, name="gus")
    await served.call("key.revoke", fingerprint=added["fingerprint"])
    assert work.statements
    taken = {}
    for user in ("gus", served.kernel.owner.username, "nobody-of-this-name"):
        for private in (revoked, unknown):
            work.statements.clear()
            work.key_operations.clear()
            seen = await messages(port, private, user)
            taken[user, private.name] = seen, work.key_operations[:], work.statements[:]
    (seen, operations, statements), *others = taken.values()
    assert "receive packet: type 51" in seen and operations
    assert all(one == (seen, operations, statements) for one in others), taken
