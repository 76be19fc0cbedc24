"""One SSH host from its lock to its end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import stat
import time
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from antiphon.ssh.files import (
    ADDRESS_FILE,
    GUESTS_FOLDER,
    KEY_FILE,
    LOCK_FILE,
    LOG_FILE,
    PORT_FILE,
    SshAddress,
)
from antiphon.ssh.guest_processes import GuestProcesses
from antiphon.ssh.kernel_link import KernelLink
from antiphon.ssh.server import SessionContext, listen
from antiphon_kernel.client.address import last_port, read_address, take_lock
from antiphon_kernel.client.ownership import check_ownership, write_private
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

_log = logging.getLogger(__name__)

END_SECONDS = 3.0
"""How long sessions have to end before their processes are."""


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Decisions of `antiphon share`."""

    data: Path
    bind: str
    port: int
    """0: the one of the last time, or any free one."""
    ask: bool
    until: int | None
    """When it ends by itself, in milliseconds since the epoch."""


def run_host(options: HostOptions) -> int:
    """Serve guests until a signal, the kernel's end, or the time is over; return the exit code."""
    check_ownership(options.data)
    log_file = os.open(
        options.data / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
    )
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # Of each connection the library would give an account; what goes wrong stays in the log.
    asyncssh.set_log_level(logging.ERROR)
    if take_lock(options.data / LOCK_FILE) is None:
        _log.error("another SSH host serves %s", options.data)
        return 1
    try:
        return asyncio.run(_serve(options, log_file))
    except AntiphonError as error:
        _log.error("%s", error.message)
    except OSError as error:
        _log.error("cannot listen at %s port %s: %s", options.bind, options.port, error)
    finally:
        (options.data / ADDRESS_FILE).unlink(missing_ok=True)
    return 1


async def _serve(options: HostOptions, log_file: int) -> int:
    loop = asyncio.get_running_loop()
    ending: asyncio.Future[str] = loop.create_future()

    def end(reason: str, for_guests: str) -> None:
        if not ending.done():
            _log.info("ending: %s", reason)
            ending.set_result(for_guests)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        name = signal.Signals(number).name
        loop.add_signal_handler(number, end, name, "The owner has ended the shared session.")
    link = KernelLink(lambda: read_address(options.data))
    await link.start()
    processes = GuestProcesses(log_file)
    guests = options.data / GUESTS_FOLDER
    guests.mkdir(mode=0o700, exist_ok=True)
    context = SessionContext(link, processes, guests, options.ask)
    host_key = _host_key(options.data)
    acceptor = await _listen(context, host_key, options)
    preparing = asyncio.create_task(processes.prepare(), name="fork server")
    address = SshAddress(
        pid=os.getpid(),
        bind=options.bind,
        port=acceptor.get_port(),
        fingerprint=host_key.get_fingerprint(),
        ask=options.ask,
        until=options.until,
    )
    write_private(options.data / PORT_FILE, f"{address.port}\n")
    write_private(options.data / ADDRESS_FILE, address.model_dump_json(exclude_none=True) + "\n")
    if options.until is not None:
        seconds = max(0.0, options.until / 1_000 - time.time())
        loop.call_later(seconds, end, "its time is over", "The time of the shared session is over.")
    watching = asyncio.create_task(link.watch(context.dismissed), name="dismissals")

    def kernel_ended(task: asyncio.Task[str]) -> None:
        if not task.cancelled():
            error = task.exception()
            for_guests = "The kernel has ended, and the shared session with it."
            end(task.result() if error is None else repr(error), for_guests)

    watching.add_done_callback(kernel_ended)
    _log.info("listening at %s port %s", options.bind, address.port)
    reason = await ending
    (options.data / ADDRESS_FILE).unlink(missing_ok=True)
    watching.cancel()
    acceptor.close()
    for session in tuple(context.open.values()):
        session.dismiss(reason)
    deadline = loop.time() + END_SECONDS
    while context.open and loop.time() < deadline:  # noqa: ASYNC110  each session ends by itself
        await asyncio.sleep(0.02)
    await asyncio.gather(preparing, return_exceptions=True)
    await processes.close()
    await link.close()
    return 0


async def _listen(
    context: SessionContext, host_key: asyncssh.SSHKey, options: HostOptions
) -> asyncssh.SSHAcceptor:
    last = last_port(options.data / PORT_FILE) if options.port == 0 else None
    try:
        return await listen(context, host_key, options.bind, last or options.port)
    except OSError:
        if last is None:
            raise
        _log.info("port %s is taken now", last)
        return await listen(context, host_key, options.bind, options.port)


def _host_key(data: Path) -> asyncssh.SSHKey:
    """Return the host key, made the first time.

    Raises:
        AntiphonError: storage_failed if others can read it, or it is none.
    """
    path = data / KEY_FILE
    if not path.exists():
        made = asyncssh.generate_private_key("ssh-ed25519")
        write_private(path, made.export_private_key().decode("ascii"))
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise AntiphonError(
            ErrorCode.STORAGE_FAILED,
            f"Others may read the host key {path}: take a new one (delete the file), and tell your"
            " guests its fingerprint.",
        )
    try:
        return asyncssh.read_private_key(path)
    except (OSError, asyncssh.KeyImportError) as error:
        raise AntiphonError(
            ErrorCode.STORAGE_FAILED, f"The host key {path} cannot be read: {error}."
        ) from error
