"""One kernel from the lock on its folder to the last flush.

Its folder is held for the life of the process. `kernel.json` and `kernel.port` in it say where the
kernel can be reached, now and the next time.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import getpass
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import uvloop
from platformdirs import user_config_path, user_state_path

from antiphon_kernel.client.address import (
    ADDRESS_FILE,
    KernelAddress,
    on_last_port,
    stated_address,
)
from antiphon_kernel.client.discovery import RunningKernel, project_of, register_kernel
from antiphon_kernel.client.ownership import SOCKET_FILE, write_private
from antiphon_kernel.client.trust import is_trusted_file
from antiphon_kernel.config import (
    Discovery,
    KernelConfig,
    hide_variables,
    load_config,
)
from antiphon_kernel.daemon.data_folder import hold_folder
from antiphon_kernel.daemon.demo_project import make_demo_project
from antiphon_kernel.daemon.idle_shutdown import CHECK_SECONDS, IdlePolicy, IdleShutdown
from antiphon_kernel.daemon.log import log_to
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.providers.opening import packaged_model
from antiphon_kernel.registry import Registry
from antiphon_kernel.server import Server
from antiphon_kernel.tasks import BackgroundTasks
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.tools.drift import resume_all_drifts
from antiphon_kernel.turns import TURN_TOOLS, Models, TurnRunner, load_models
from antiphon_kernel.types.clock import Clock, SystemClock
from antiphon_kernel.types.constants import LOG_FILE, STORE_VARIABLE, TOKEN_VARIABLE
from antiphon_kernel.types.errors import AntiphonError, storage_failed
from antiphon_kernel.types.ids import as_name

PORT_FILE: Final = "kernel.port"

STORE_FILE: Final = "kernel.store"
"""Names the database of a folder whose documents are in one."""


def write_address(data: Path, address: KernelAddress) -> None:
    """Put the address in place in one step, readable only by this user: it holds the token."""
    write_private(data / ADDRESS_FILE, address.model_dump_json(exclude_none=True) + "\n")


def remove_address(data: Path) -> None:
    """Take the address away if it is this process's own."""
    try:
        address = stated_address(data)
    except AntiphonError:
        return
    if address.pid == os.getpid():
        (data / ADDRESS_FILE).unlink(missing_ok=True)


LOCAL_OPENING: Final = (
    "Write a short essay, five paragraphs, on why two people who write one text together write a"
    " better one. I shall edit it while you write."
)
"""Message that the small model of a demo answers."""

END_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DaemonSettings:
    """Settings of one kernel process."""

    data: Path
    project: Path
    """Folder in which tools work, unless a demo's project is in the data folder."""
    port: int = 0
    """TCP port on the loopback interface; 0: the one of the last time, or any free one."""
    recordings: tuple[Path, ...] = ()
    """Recordings that scripted models play."""
    demo: bool = False
    """A throw-away kernel: it has a project of its own, and plays the demo's recordings unless
    others are named."""
    speed: float = 1.0
    """How much faster than recorded."""
    local: bool = False
    """The small model that a package brings begins by itself, in place of recordings."""
    idle_policy: IdlePolicy = field(default_factory=IdlePolicy)
    store: str | None = field(default=None, repr=False)
    """URL of the database that the kernel shares with others, which may have a password in it."""
    listen: tuple[str, int] | None = None
    """Host and port for the others; None for the loopback interface and any free port."""
    starter: int | None = None
    """Descriptor of a pipe that whoever started the process holds open for as long as they run."""


def run_kernel(settings: DaemonSettings, ready: Callable[[KernelAddress], None]) -> None:
    """Serve until a signal or until nobody needs the kernel any more.

    Args:
        ready: is told the address once the kernel answers.

    Raises:
        DataFolderInUse: another kernel serves this folder.
        AntiphonError: the folder is not trusted, or the stored data or a recording cannot be read.
        OSError: the folder cannot be written to, or the port is taken.
    """
    with hold_folder(settings.data) as warning:
        # Of a kernel that was killed: nobody may take it for this one's.
        (settings.data / ADDRESS_FILE).unlink(missing_ok=True)
        log_to(settings.data / LOG_FILE)
        if warning is not None:
            _log.warning("%s", warning)
        _check_store(settings)
        if settings.demo:
            make_demo_project(settings.data)
        # Before anything is started that would get the keys with its environment.
        models = _load_models(settings)
        uvloop.run(_run(settings, models, ready, SystemClock()))


def _check_store(settings: DaemonSettings) -> None:
    """Raises AntiphonError if a folder whose documents are in a database would get others."""
    named = settings.data / STORE_FILE
    if settings.store is not None:
        from antiphon_kernel.storage.postgres import place_of

        write_private(named, f"{place_of(settings.store)}\n")
    elif named.exists():
        raise storage_failed(
            f"The documents of {settings.data} are in the database"
            f" {named.read_text('utf-8').strip()}: set {STORE_VARIABLE} to its URL. Remove {named}"
            " to begin with other documents here.",
        )


def _load_models(settings: DaemonSettings) -> Models:
    """Return the models of a kernel, and take secrets out of this process' environment.

    A kernel that plays recordings has no others: it needs no key and asks no server.

    Raises:
        AntiphonError: a recording cannot be read, or the small model is not installed.
    """
    config, variables = load_config(
        user_config_path("antiphon"), settings.project, os.environ, is_trusted_file
    )
    hide_variables((*variables, STORE_VARIABLE, TOKEN_VARIABLE))
    if settings.local:
        local = KernelConfig(models=(packaged_model(),), discovery=Discovery())
        return Models(config=local, auto_play=True, opening=LOCAL_OPENING)
    if settings.recordings or settings.demo:
        return load_models(settings.recordings, demo=settings.demo, speed=settings.speed)
    for problem in config.problems:
        _log.warning("%s", problem)
    return Models(config=config)


async def _run(
    settings: DaemonSettings, models: Models, ready: Callable[[KernelAddress], None], clock: Clock
) -> None:
    loop = asyncio.get_running_loop()
    ending: asyncio.Future[str] = loop.create_future()

    def end(reason: str) -> None:
        if not ending.done():
            ending.set_result(reason)

    for number in END_SIGNALS:
        loop.add_signal_handler(number, end, signal.Signals(number).name)
    async with _open_kernel(settings, models, clock) as (kernel, server, turns):
        address = KernelAddress(
            pid=os.getpid(),
            kernel=kernel.id,
            sync=server.sync,
            http=server.http,
            socket=str(server.socket),
            token=server.token,
            data=str(settings.data),
        )
        with _registered(settings, address, clock):
            _log.info("kernel %s serves %s at %s", kernel.id, settings.project, server.http)
            # What is there now stays: looking through it again and again costs 40 ms each time.
            gc.freeze()
            ready(address)
            idleness = IdleShutdown(settings.idle_policy, clock)
            if settings.starter is not None:
                idleness.watch_starter(settings.starter)
            while not ending.done():
                members, visits = server.connections.members, server.access.visits
                if idleness.observe(members, visits=visits, busy=turns.busy):
                    end("nobody is here")
                await asyncio.wait([ending], timeout=CHECK_SECONDS)
            _log.info("ending: %s", ending.result())
    if kernel.journal.lost is not None:
        raise kernel.journal.lost  # the exit code says that not all is as it was left


@contextlib.asynccontextmanager
async def _open_kernel(
    settings: DaemonSettings, models: Models, clock: Clock
) -> AsyncIterator[tuple[Kernel, Server, TurnRunner]]:
    """The kernel with everything that works on it; closed in the order that loses nothing."""
    # Outside the project: what deletes the data folder may go on.
    rescued = user_state_path("antiphon") / "rescued"
    spare = rescued / f"{settings.project.name}-{clock.now_ms()}.db"
    kernel = await Kernel.open(
        settings.data,
        project_of(settings.data, settings.project),
        registry=Registry((*KERNEL_TOOLS, *TURN_TOOLS)),
        owner=owner_name(getpass.getuser()),
        clock=clock,
        spare=None if settings.demo else spare,
        store=settings.store,
    )
    kernel.presences.is_on = models.config.context.record_presence
    settled, files = models.config.files, kernel.files
    files.saves_itself = settled.autosave != "off"
    files.checks.commands = settled.checks
    files.servers.commands = settled.language_servers
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(kernel.close)
        stack.push_async_callback(models.close)
        turns = TurnRunner(kernel, models)
        stack.push_async_callback(turns.close)
        socket = settings.data / SOCKET_FILE
        server = await on_last_port(
            settings.data / PORT_FILE,
            settings.port,
            lambda port: Server(kernel).start(port=port, socket=socket, listen=settings.listen),
        )
        stack.push_async_callback(server.close)
        tasks = BackgroundTasks(_log)
        tasks.start(models.look(), "local models")
        tasks.start(resume_all_drifts(kernel), "drifts that were staged")
        stack.push_async_callback(tasks.close)
        yield kernel, server, turns


@contextlib.contextmanager
def _registered(settings: DaemonSettings, address: KernelAddress, clock: Clock) -> Iterator[None]:
    """Clients can find the kernel, inside its data folder and in the user's register."""
    write_address(settings.data, address)
    kernel = RunningKernel(
        data=settings.data,
        project=settings.project,
        started_ms=clock.now_ms(),
        pid=address.pid,
        demo=settings.demo,
    )
    try:
        entry = register_kernel(kernel)
    except OSError as error:
        entry = None
        _log.warning(
            "the user's state folder cannot be written to (%s): `antiphon join` finds this kernel"
            " only with --data %s",
            error,
            settings.data,
        )
    try:
        yield
    finally:
        if entry is not None:
            entry.unlink(missing_ok=True)
        remove_address(settings.data)


def owner_name(login: str) -> str:
    """A login name as a username: what does not fit is left out."""
    return as_name(login) or "owner"
