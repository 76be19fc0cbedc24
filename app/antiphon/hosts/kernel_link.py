"""A host's connections to its kernel, which decides about everybody who comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.types.errors import AntiphonError, ErrorCode

_WAIT_SECONDS = 20
"""The kernel notices that a host has gone when it has answered this."""


@dataclass(frozen=True, slots=True)
class OpenedSession:
    """A session that the kernel has opened for a guest."""

    session: str
    username: str
    address: KernelAddress
    """The kernel, with the token of this session."""


@dataclass(frozen=True, slots=True)
class OfferedKey:
    """A public key of a client."""

    line: str
    """As in a `.pub` file."""
    fingerprint: str


class KernelLink:
    """Calls as the owner."""

    def __init__(self, locate: Callable[[], KernelAddress]) -> None:
        """`locate` says where the kernel is, anew for each connection."""
        self._locate = locate
        self._calls = ToolClient(self._locate)
        self._watch = ToolClient(self._locate)
        self._host = ""
        """The session that all sessions of guests end with."""
        self.project = ""
        """Name of the project, as people call it."""

    async def start(self) -> None:
        """Connect.

        Raises:
            AntiphonError: no_kernel.
        """
        self._host = str((await self._watch.call("session.whoami", {}))["session"])
        for calls in (self._watch, self._calls):  # which tells the kernel that this is a host
            await calls.call("ssh.ended", {})
        self.project = str((await self._calls.call("kernel.info", {}))["label"])

    async def close(self) -> None:
        """Let go of the kernel, which ends all sessions of guests."""
        await self._watch.close()
        await self._calls.close()

    async def refusal(self, offered: OfferedKey) -> str | None:
        """Return why nobody comes in with a key now; None if somebody does."""
        answer = await self._calls.call("ssh.check", {"fingerprint": offered.fingerprint})
        return None if (refused := answer.get("refused")) is None else str(refused)

    async def open(self, **shown: str) -> OpenedSession:
        """Begin the session of a guest, who has shown what `ssh.open` takes.

        Raises:
            AntiphonError: permission_denied, saying why; no_kernel.
        """
        opened = await self._calls.call("ssh.open", {"host": self._host, **shown})
        there = self._locate()
        address = KernelAddress(
            pid=0, kernel=there.kernel, sync=there.sync, http=there.http, token=opened["token"]
        )
        return OpenedSession(opened["session"], opened["username"], address)

    async def end(self, session: str) -> None:
        """Say that a session is over; a kernel that has gone knows it already."""
        try:
            await self._calls.call("ssh.close", {"host": self._host, "session": session})
        except AntiphonError as error:
            if error.code is not ErrorCode.NO_KERNEL:
                raise

    async def watch(self, ended: Callable[[str, str], None]) -> str:
        """Report each session that the kernel ends, until it goes away; return why it did."""
        try:
            while True:
                answer = await self._watch.call("ssh.ended", {"wait": _WAIT_SECONDS})
                for one in answer["ended"]:
                    ended(one["session"], one["reason"])
        except AntiphonError as error:
            return error.message

    async def ask(self, key: str, name: str, seconds: float) -> str | None:
        """Ask the owners about an unknown key; the role that they give, None for no.

        Raises:
            AntiphonError: rate_limited, no_kernel.
        """
        asked = {"key": key, "name": name[:1_000], "wait": seconds}
        async with self._calls.another() as calls:
            role = (await calls.call("key.ask", asked)).get("role")
        return None if role is None else str(role)
