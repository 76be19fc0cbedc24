"""Whole contexts over HTTP: of any size, whole or not at all, while everybody else goes on."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.client.transfers import export_context, import_context
from antiphon_kernel.limits import Limits
from antiphon_kernel.server.limits import ServerLimits
from antiphon_kernel.types.constants import CALL_BYTES
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.errors import raises
from tests.kernel.served import ServedKernel, served_kernel
from tests.kernel.server.invited import as_invited, invite
from tests.waiting import PATIENCE, until

LARGE = 8
"""Blocks of a megabyte: more than fits into every buffer on the way."""

LINE = "a line 😀 of text\n"


async def export(address: KernelAddress, **params: str | list[str]) -> bytes:
    return await asyncio.to_thread(lambda: b"".join(export_context(address, params)))


async def import_(address: KernelAddress, text: bytes, **params: str) -> dict[str, Any]:
    pieces = (text[at : at + 10_000] for at in range(0, len(text), 10_000))
    return await asyncio.to_thread(import_context, address, pieces, params)


def told(text: bytes) -> list[Any]:
    """Texts and authors of an export."""
    lines = [json.loads(line) for line in text.splitlines()]
    names = {line["id"]: line["username"] for line in lines if line["type"] == "principal"}
    return [
        (line["text"], [(run["start"], run["end"], names[run["principal"]]) for run in authors])
        for line in lines
        if (authors := line.get("authors")) is not None
    ]


async def test_export_over_the_frame_limit_is_imported(tmp_path: Path) -> None:
    limits = ServerLimits(frame=100_000)
    async with served_kernel(tmp_path, limits) as served:
        for _ in range(2):
            await served.block("😀" * 30_000, status="done")
        exported = await export(served.locate_tcp(), context="default")
        assert len(exported) > 2 * limits.frame
        assert (await import_(served.locate(), exported, label="copy"))["blocks"] == 2
        assert told(await export(served.locate(), context="copy")) == told(exported)


async def test_stream_is_what_the_tool_gives(served: ServedKernel) -> None:
    await served.block("```\n\x1b[31m漢字\n", status="done")
    for form in ("jsonl", "markdown", "replay"):
        text = (await served.call("context.export", format=form))["text"]
        assert (await export(served.locate(), format=form)).decode() == text


async def test_replay_is_redacted_by_every_pattern_and_a_wrong_one_is_named(
    served: ServedKernel,
) -> None:
    await served.block("a secret", status="done")
    text = await export(served.locate(), format="replay", redact=[r"se\w+", "^a"])
    assert '"█ ██████"'.encode() in text
    with raises(ErrorCode.INVALID_REGEX):
        await export(served.locate(), format="replay", redact=["("])


@pytest.mark.parametrize("form", ["jsonl", "markdown"])
async def test_tool_says_too_large_and_names_the_command(served: ServedKernel, form: str) -> None:
    await served.block(LINE * 100, status="done")
    text = (await served.call("context.export"))["text"]
    served.kernel.limits = Limits(export_code_points=1_000)
    for call in (
        served.call("context.export", format=form),
        served.call("context.import", label="copy", text=text),
    ):
        with pytest.raises(AntiphonError, match=r"antiphon (ex|im)port") as caught:
            await call
        assert caught.value.code is ErrorCode.TOO_LARGE
    assert (await import_(served.locate(), text.encode(), label="copy"))["blocks"] == 1


async def test_line_over_the_limit_is_too_large(served: ServedKernel) -> None:
    served.kernel.limits = Limits(export_line_bytes=30_000)
    about = b'{"type": "context", "format": 2, "context_id": "", "label": "x", "version": 1}\n'
    with pytest.raises(AntiphonError, match="Line 2 has more than 30000 bytes") as caught:
        await import_(served.locate(), about + b'"' + b"x" * 100_000)
    assert caught.value.code is ErrorCode.TOO_LARGE


async def test_call_over_the_frame_limit_is_too_large_before_it_is_sent(
    served: ServedKernel,
) -> None:
    calls = ToolClient(served.locate)
    with pytest.raises(AntiphonError, match="33554432") as caught:
        await calls.call("block.create", {"role": "user", "content": "x" * (CALL_BYTES + 1)})
    assert caught.value.code is ErrorCode.TOO_LARGE
    assert (await calls.call("session.whoami", {}))["username"] == "amy"
    await calls.close()


async def test_call_over_the_limit_of_another_kernel_is_too_large(tmp_path: Path) -> None:
    async with served_kernel(tmp_path, ServerLimits(frame=10_000)) as served:
        calls = ToolClient(served.locate)
        with raises(ErrorCode.TOO_LARGE):
            await calls.call("block.create", {"role": "user", "content": "x" * 20_000})
        await calls.close()


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"context": "nope"}, ErrorCode.CONTEXT_NOT_FOUND),
        ({"format": "pdf"}, ErrorCode.INVALID_PARAMS),
        ({"wrong": "x"}, ErrorCode.INVALID_PARAMS),
    ],
)
async def test_export_with_wrong_parameters_is_refused(
    served: ServedKernel, params: dict[str, str], code: ErrorCode
) -> None:
    with raises(code):
        await export(served.locate(), **params)


async def test_viewer_exports_and_does_not_import(served: ServedKernel) -> None:
    await served.block("text", status="done")
    viewer = as_invited(served, (await invite(served, "viewer"))["token"])
    exported = await export(viewer)
    with raises(ErrorCode.PERMISSION_DENIED):
        await import_(viewer, exported * 200, label="copy")
    for nobody in (as_invited(served, "wrong"), viewer.model_copy(update={"token": None})):
        with pytest.raises(AntiphonError):
            await export(nobody)


class SlowReader:
    """Asks for an export and reads it only when told to."""

    def __init__(self, address: KernelAddress, **params: str) -> None:
        self._pieces = export_context(address, params)
        self.read = b""

    async def begin(self) -> None:
        self.read += await asyncio.to_thread(next, self._pieces)

    async def rest(self) -> AntiphonError | None:
        """Read on to the end; the error that it ends with."""

        def read() -> AntiphonError | None:
            try:
                for piece in self._pieces:
                    self.read += piece
            except AntiphonError as error:
                return error
            return None

        return await asyncio.to_thread(read)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a kernel with large blocks, which tests copy."""
    folder = tmp_path_factory.mktemp("large")

    async def fill() -> None:
        async with served_kernel(folder) as served:
            for _ in range(LARGE):
                await served.block(LINE * (1_000_000 // len(LINE)), status="done")

    asyncio.run(fill())
    return folder / "data"


@pytest.fixture
async def large(tmp_path: Path, filled: Path) -> AsyncIterator[ServedKernel]:
    shutil.copytree(filled, tmp_path / "data")
    async with served_kernel(tmp_path) as served:
        yield served


async def test_unread_export_does_not_delay_other_calls(large: ServedKernel) -> None:
    reader = SlowReader(large.locate())
    await reader.begin()
    async with asyncio.timeout(PATIENCE):
        block = await large.block("meanwhile", status="done")
        await large.call("block.blame", block_id=block)
        assert len(await export(large.locate_tcp())) > LARGE * 1_000_000
    assert await reader.rest() is None
    assert b"meanwhile" not in reader.read
    assert reader.read.endswith(b'{"type": "end", "blocks": 8}\n')
    sessions = len(large.kernel.sessions.of(large.kernel.owner.id))
    leaver = export_context(large.locate(), {})
    await asyncio.to_thread(next, leaver)
    leaver.close()  # type: ignore[attr-defined]
    await until(
        lambda: len(large.kernel.sessions.of(large.kernel.owner.id)) == sessions,
        "the session of the export has ended",
    )


async def test_export_ends_when_its_reader_is_dismissed_or_its_kernel_ends(
    large: ServedKernel,
) -> None:
    made = await invite(large, "editor", name="vera")
    ends: list[tuple[str, str, dict[str, Any]]] = [
        ("jsonl", "kernel.role", {"role": "viewer"}),
        ("jsonl", "kernel.kick", {"minutes": 0}),
        ("markdown", "kernel.kick", {"minutes": 0}),
    ]
    for form, end, more in ends:
        reader = SlowReader(as_invited(large, made["token"]), format=form)
        await reader.begin()
        await large.call(end, principal="vera", **more)
        error = await reader.rest()
        assert error is not None
        assert error.code in (ErrorCode.PERMISSION_DENIED, ErrorCode.NO_KERNEL)
        assert len(reader.read) < LARGE * 1_000_000
        with pytest.raises(AntiphonError, match=r"broken off|not as"):
            await import_(large.locate(), reader.read, label="copy")
    reader = SlowReader(large.locate())
    await reader.begin()
    await large.doors.close()
    error = await reader.rest()
    assert error is not None
    assert error.code is ErrorCode.NO_KERNEL
    assert b'"type": "end"' not in reader.read


async def test_import_that_breaks_off_or_is_refused_leaves_nothing(large: ServedKernel) -> None:
    exported = await export(large.locate())
    path = large.locate().reachable_socket
    assert path is not None
    half = exported[: len(exported) // 2]
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))

        def send() -> None:
            head = b"POST /import?label=copy HTTP/1.1\r\nHost: localhost\r\n"
            client.sendall(head + f"Content-Length: {len(exported)}\r\n\r\n".encode() + half)

        await asyncio.to_thread(send)
        with pytest.raises(AntiphonError, match="already"):
            await import_(large.locate(), exported, label="copy")
    await until(lambda: large.kernel.contexts.free_label("copy") == "copy", "the label is free")
    assert [row.label for row in large.kernel.contexts.rows()] == ["default"]

    # One that is refused is answered while it is being sent.
    for address in (large.locate(), large.locate_tcp()):
        with pytest.raises(AntiphonError, match="Line 2") as caught:
            await import_(address, exported.replace(b"\n", b"\n{\n", 1), label="copy")
        assert caught.value.details["line"] == 2
    assert (await import_(large.locate(), exported, label="copy"))["blocks"] == LARGE
