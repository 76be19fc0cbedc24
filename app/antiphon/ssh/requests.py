"""Requests to the fork server of guests' sessions, and its answers: lines of JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from antiphon_kernel.client.address import KernelAddress


class GuestRequest(BaseModel):
    """A process for a guest. The files that become its standard streams come along with it."""

    model_config = ConfigDict(frozen=True)

    address: KernelAddress
    """The kernel, with the token of this session."""
    project: str
    """Name of the project, as the header shows it."""
    folder: str
    """Folder of this guest: state of the app, and nothing else of this machine."""
    environment: dict[str, str]
    has_terminal: bool
    command: tuple[str, ...] | None = None
    """A command of antiphon with its arguments; None: the app."""


class KillRequest(BaseModel):
    """The end of a process that has not ended by itself."""

    model_config = ConfigDict(frozen=True)

    kill: int
    """Number of the process."""


class ProcessState(BaseModel):
    """State of a process, as the fork server reports it."""

    model_config = ConfigDict(frozen=True)

    pid: int
    """Number of the process; 0 if there could be none."""
    ended: int | None = None
    """How it has ended: the exit code, or the number of a signal below 0; None: it has begun."""
