"""Options that the app was started with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon_kernel.client.address import KernelAddress, read_address
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.types.constants import DATA_FOLDER

if TYPE_CHECKING:
    from antiphon.replay.replay import Replay

DEMO = "demo"


@dataclass(frozen=True, slots=True)
class AppOptions:
    """Everything the command line decides before the app starts."""

    data: Path
    """The kernel's data folder: `kernel.json` in it says where the kernel is now. For a kernel
    elsewhere, a folder of this user in which the app may keep what belongs to that kernel."""
    context: str | None = None
    """Id or label of the context to show; if absent, the one that was open last."""
    file: tuple[str, int | None] | None = None
    """Path of a file of the project to show over it, and the line, counted from 0."""
    as_name: str | None = None
    """Act as this principal (made on first use) instead of the owner of the data folder."""
    project: Path | None = None
    """Folder of the files that a message may name; the project around the working directory if
    absent."""
    demo: bool = False
    """Play the demo's first minute: the recording starts by itself and the TRY line is shown."""
    address: KernelAddress | None = None
    """A kernel elsewhere, where there is no data folder to read the address from."""
    is_guest: bool = False
    """The app runs on the kernel's machine for somebody whom a host let in: its files and programs
    are not theirs."""
    restart: Callable[[], None] | None = None
    """Starts the kernel again after it died; blocks until it answers, and works once: a second
    call raises AntiphonError(no_kernel). None where the app did not start the kernel itself."""
    replay: Replay | None = None
    """Show this, in the place of a context of a kernel."""
    speed: float | None = 1.0
    """How many times as fast as it was a replay is played at first; None: its position changes by
    `session.player.seek` alone."""
    has_kernel: Callable[[], bool] | None = None
    """Says whether the kernel that is being started answers by now, or raises
    AntiphonError(no_kernel) because it never will. None where one has answered before the app."""

    def locate(self) -> KernelAddress:
        """Return the kernel's current address; read again before every connection.

        Raises:
            AntiphonError: no_kernel.
        """
        return self.address if self.address is not None else read_address(self.data)

    def connect(self) -> ToolClient:
        """Return a connection of its own: calls on one connection wait for each other."""
        return ToolClient(self.locate, as_name=self.as_name)


def kernel_name(options: AppOptions) -> str:
    """Return a name for the files that are kept of a kernel, another one for each `--as` name."""
    address = options.address
    name = str(options.data) if address is None else address.kernel or address.http
    return name if options.as_name is None else f"{name} as {options.as_name}"


def place_name(options: AppOptions) -> str:
    """Return the kernel's name in the header: its project, `demo`, or its host."""
    if options.address is not None:
        return options.address.http.rpartition("/")[2]
    if options.demo or options.data.name.startswith("antiphon-demo-"):
        return DEMO
    return options.data.parent.name if options.data.name == DATA_FOLDER else options.data.name
