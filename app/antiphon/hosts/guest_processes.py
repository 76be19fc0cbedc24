"""Processes of guests, forked by a process that has imported the app once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

from antiphon_kernel.client.address import KernelAddress

Ended = Callable[[int], None]
"""Takes the exit code of a process, or the number of a signal below 0."""


@dataclass(frozen=True, slots=True)
class GuestRequest:
    """A process for a guest. The files that become its standard streams come along with it."""

    address: KernelAddress
    """The kernel, with the token of this session."""
    project: str
    """Name of the project, as the header shows it."""
    folder: Path
    """Folder of this guest: state of the app, and nothing else of this machine."""
    environment: dict[str, str]
    has_terminal: bool
    command: tuple[str, ...] | None = None
    """A command of antiphon with its arguments; None: the app."""


class _SentFiles(list[int]):
    """Open files, which whoever unpickles them gets too."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, ([DupFd(file) for file in self],)


def _received(files: list[Any]) -> list[int]:
    return [file.detach() for file in files]


def _run(request: GuestRequest, files: list[int]) -> None:
    import_module("antiphon.guest.session_process").run_process(request, files)


class GuestProcesses:
    """The fork server of `multiprocessing`, which is started with the first process."""

    def __init__(self) -> None:
        self._context = get_context("forkserver")
        self._context.set_forkserver_preload(["antiphon.guest.preloaded"])
        self._preparing = asyncio.Lock()
        self._is_prepared = False

    async def prepare(self) -> None:
        """Wait until the fork server, which takes a moment to import the app, answers."""
        async with self._preparing:
            if not self._is_prepared:
                first = self._context.Process(target=int, daemon=True)
                await asyncio.to_thread(first.start)
                self._is_prepared = True

    async def start(self, request: GuestRequest, files: list[int], ended: Ended) -> BaseProcess:
        """Start a process.

        Args:
            files: its standard streams, one terminal or three pipes; the caller closes them.
            ended: called when it has ended.

        Raises:
            OSError: if there can be no further process.
        """
        await self.prepare()
        loop, sent = asyncio.get_running_loop(), _SentFiles(files)
        process = self._context.Process(target=_run, args=(request, sent), daemon=True)
        try:
            process.start()
        except EOFError as error:
            raise OSError("no process could be started for this session") from error

        def over() -> None:
            loop.remove_reader(process.sentinel)
            process.join()
            ended(process.exitcode or 0)

        loop.add_reader(process.sentinel, over)
        return process

    def close(self) -> None:
        """End whatever has been started."""
        for process in active_children():
            process.kill()
