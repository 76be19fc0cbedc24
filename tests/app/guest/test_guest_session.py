"""Sessions of guests whose connection goes away, or who are not let in."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.waiting import until

pytest.importorskip("asyncssh", reason="asyncssh is not installed: pip install .[ssh]")


class SlowLink:
    """A kernel that answers when the test says so."""

    project = "here"

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.asked = asyncio.Event()
        self.ended: list[str] = []

    async def open(self, **shown: str) -> Any:
        from antiphon.hosts.kernel_link import OpenedSession

        self.asked.set()
        await self.may_answer.wait()
        address = KernelAddress(pid=0, kernel=shown["fingerprint"], sync="", http="", token="")
        return OpenedSession("session-1", "bo", address)

    async def end(self, session: str) -> None:
        self.ended.append(session)


class KickedLink(SlowLink):
    """A kernel that lets nobody in before some moment."""

    async def open(self, **shown: str) -> Any:
        words = "bo has been kicked and may come back at 2026-11-23T12:47:01.699Z."
        raise AntiphonError(ErrorCode.PERMISSION_DENIED, words)


class Channel:
    """A channel that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def write(self, data: bytes, kind: Any) -> None:
        self.written += data

    def exit(self, code: int) -> None:
        pass


async def test_kicked_guest_is_told_the_time_in_words(tmp_path: Path) -> None:
    from antiphon.hosts.kernel_link import OfferedKey
    from antiphon.hosts.session import SessionContext
    from antiphon.ssh.server import SshSession

    channel = Channel()
    context = SessionContext(cast(Any, KickedLink()), cast(Any, None), tmp_path, ask=False)
    key = OfferedKey("ssh-ed25519 AAAA", "SHA256:bo")
    session = SshSession(context, key, "bo", lambda _: None)
    session.connection_made(cast(Any, channel))
    session.exec_requested("tail")
    session.session_started()
    await until(lambda: channel.written.endswith(b"\n"), "the refusal")
    assert b"may come back at 2026-11-23 12:47Z." in channel.written


async def test_session_that_opens_while_its_connection_is_lost_is_ended(tmp_path: Path) -> None:
    from antiphon.hosts.kernel_link import OfferedKey
    from antiphon.hosts.session import SessionContext
    from antiphon.ssh.server import SshSession

    link = SlowLink()
    context = SessionContext(cast(Any, link), cast(Any, None), tmp_path, ask=False)
    key = OfferedKey("ssh-ed25519 AAAA", "SHA256:bo")
    session = SshSession(context, key, "bo", lambda _: None)
    session.exec_requested("tail")
    session.session_started()
    await link.asked.wait()
    session.connection_lost(None)
    await asyncio.sleep(0)
    link.may_answer.set()
    await until(lambda: link.ended == ["session-1"], "the end of the session")
    assert not context.open
