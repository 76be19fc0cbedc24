"""A real kernel, with a clock that the test controls or behind sockets; stock Yjs clients."""

from __future__ import annotations

import fcntl
import gc
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import DEFAULT_LIMITS, Limits
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.turns.request import context_request
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.records import Actor
from tests.clocks import ManualClock
from tests.kernel.founding import copy_founded
from tests.kernel.kernel.calls import Caller, Make, OpenKernel, open_writer
from tests.kernel.served import ServedKernel, served_kernel

PACKAGES = ("yjs@13.6.27", "y-websocket@3.0.0", "ws@8.18.3")


@pytest.fixture(scope="session")
def modules() -> Path:
    """The client's packages in a folder that later runs find again; skips where npm cannot.

    Several test processes may want it at once: one installs, the others wait for it.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not installed")
    name = "antiphon-node-" + "-".join(PACKAGES).replace("@", "_")
    kept = Path("/tmp") / name
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            _install(npm, kept)
    return kept


def _install(npm: str, kept: Path) -> None:
    fresh = Path(tempfile.mkdtemp(prefix="antiphon-node-", dir=kept.parent))
    # What npm has fetched before is taken from its cache, also without a network.
    options = ("--no-audit", "--no-fund", "--prefer-offline", "--fetch-retries=0")
    command = [npm, "install", *options, *PACKAGES]
    try:
        subprocess.run(command, cwd=fresh, check=True, capture_output=True, timeout=60)
        fresh.rename(kept)
    except (subprocess.SubprocessError, OSError) as error:
        shutil.rmtree(fresh, ignore_errors=True)
        pytest.skip(f"the packages of a Yjs client cannot be installed: {error}")


@pytest.fixture(autouse=True)
def imported_is_no_garbage() -> Iterator[None]:
    """Leave what a test has imported out of later collections: it takes most of their time."""
    before = len(sys.modules)
    yield
    if len(sys.modules) > before + 100:
        gc.freeze()


@pytest.fixture
def collection_off() -> Iterator[None]:
    """Turn the garbage collector off: objects in reference cycles stay in memory."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what is about a kernel's files where it has none."""
    if config.getoption("--store") == "postgres":
        for item in items:
            if item.get_closest_marker("sqlite"):
                item.add_marker(pytest.mark.skip("it is about the files of SQLite"))


@pytest.fixture
def kernel_store(request: pytest.FixtureRequest) -> str | None:
    """The URL of the database that the test's kernel uses; None if it has files."""
    if request.config.getoption("--store") == "sqlite":
        return None
    return str(request.getfixturevalue("store"))


REGISTRY = Registry((*KERNEL_TOOLS, context_request))


@pytest.fixture
async def open_kernel(
    data: Path, clock: ManualClock, kernel_store: str | None
) -> AsyncIterator[OpenKernel]:
    """Opens the kernel of the test's data folder; closes what is left open."""
    opened: list[Kernel] = []

    async def open_one(limits: Limits = DEFAULT_LIMITS) -> Kernel:
        if kernel_store is None:
            copy_founded(data)
        kernel = await Kernel.open(
            data,
            data.parent,
            registry=REGISTRY,
            owner="amy",
            clock=clock,
            limits=limits,
            store=kernel_store,
        )
        opened.append(kernel)
        return kernel

    yield open_one
    for kernel in opened:
        await kernel.close()


@pytest.fixture
async def kernel(open_kernel: OpenKernel) -> Kernel:
    return await open_kernel()


@pytest.fixture
async def context(kernel: Kernel) -> Context:
    return await kernel.context()


@pytest.fixture
async def served(tmp_path: Path, kernel_store: str | None) -> AsyncIterator[ServedKernel]:
    async with served_kernel(tmp_path, store=kernel_store) as served:
        yield served


@pytest.fixture
def amy(kernel: Kernel) -> Actor:
    return kernel.open_session(kernel.owner, "test")


@pytest.fixture
async def bo(kernel: Kernel) -> Actor:
    return kernel.open_session(await kernel.principal("bo"), "test")


@pytest.fixture
async def aria(kernel: Kernel) -> Actor:
    return kernel.open_session(await kernel.principal("aria", PrincipalKind.MODEL), "turn")


@pytest.fixture
def call(kernel: Kernel, amy: Actor) -> Caller:
    return Caller(kernel, amy)


@pytest.fixture
def make(kernel: Kernel, amy: Actor) -> Make:
    """Creates a block and returns its id: amy's and no draft, or text of who writes this role."""

    async def make_one(content: str = "", *, role: str | None = None, **params: Any) -> str:
        request = {"kind": "file" if role is None else "text", "content": content, **params}
        actor = amy if role in (None, "user") else await open_writer(kernel, role)
        return str((await kernel.call(actor, "block.create", request))["block_id"])

    return make_one
