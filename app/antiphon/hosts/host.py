"""One host from its lock to its end: a process beside a kernel that lets guests in."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from antiphon.hosts.guest_processes import GuestProcesses
from antiphon.hosts.host_address import (
    ADDRESS_FILE,
    GUESTS_FOLDER,
    LOCK_FILE,
    PORT_FILE,
    HostAddress,
    HostOptions,
)
from antiphon.hosts.kernel_link import KernelLink
from antiphon.hosts.session import SessionContext
from antiphon_kernel.client.address import on_last_port, read_address, take_lock
from antiphon_kernel.client.ownership import check_ownership, write_private
from antiphon_kernel.types.errors import AntiphonError

_log = logging.getLogger(__name__)

END_SECONDS = 3.0
"""How long sessions have to end before their processes are."""


class HostListener(NamedTuple):
    """Open port of a host."""

    port: int
    close: Callable[[], None]
    """Let nobody connect any more."""
    fingerprint: str | None = None
    """Of its key, if it has one."""


def run_host(data: Path, options: HostOptions) -> int:
    """Serve guests until a signal, the kernel's end, or the time is over; return the exit code."""
    check_ownership(data)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # Of each connection the libraries would give an account; what goes wrong stays in the log.
    for library in ("asyncssh", "websockets"):
        logging.getLogger(library).setLevel(logging.ERROR)
    if take_lock(data / LOCK_FILE.format(options.kind)) is None:
        _log.error("another host of this kind serves %s", data)
        return 1
    try:
        return asyncio.run(_serve(data, options))
    except AntiphonError as error:
        _log.error("%s", error.message)
    except OSError as error:
        _log.error("cannot listen at %s port %s: %s", options.bind, options.port, error)
    finally:
        (data / ADDRESS_FILE.format(options.kind)).unlink(missing_ok=True)
    return 1


async def _serve(data: Path, options: HostOptions) -> int:
    loop = asyncio.get_running_loop()
    ending: asyncio.Future[str] = loop.create_future()

    def end(reason: str, for_guests: str) -> None:
        if not ending.done():
            _log.info("ending: %s", reason)
            ending.set_result(for_guests)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        name = signal.Signals(number).name
        loop.add_signal_handler(number, end, name, "The owner has ended the shared session.")
    link = KernelLink(lambda: read_address(data))
    await link.start()
    processes = GuestProcesses()
    guests = data / GUESTS_FOLDER.format(options.kind)
    guests.mkdir(mode=0o700, exist_ok=True)
    context = SessionContext(link, processes, guests, options.ask)
    listen: Callable[[SessionContext, HostOptions], Awaitable[HostListener]]
    listen = import_module(f"antiphon.{options.kind}.server").listen
    listener = await on_last_port(
        data / PORT_FILE.format(options.kind),
        options.port,
        lambda port: listen(context, options.model_copy(update={"port": port})),
    )
    preparing = asyncio.create_task(processes.prepare(), name="fork server")
    stands = options.model_dump() | {"port": listener.port, "fingerprint": listener.fingerprint}
    address = HostAddress(**stands, pid=os.getpid())
    stored = f"{address.model_dump_json(exclude_none=True)}\n"
    write_private(data / ADDRESS_FILE.format(options.kind), stored)
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
    (data / ADDRESS_FILE.format(options.kind)).unlink(missing_ok=True)
    watching.cancel()
    listener.close()
    for session in tuple(context.open.values()):
        session.dismiss(reason)
    deadline = loop.time() + END_SECONDS
    while context.open and loop.time() < deadline:  # noqa: ASYNC110  each session ends by itself
        await asyncio.sleep(0.02)
    await asyncio.gather(preparing, return_exceptions=True)
    processes.close()
    await link.close()
    return 0
