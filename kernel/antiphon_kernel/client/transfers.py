"""Exporting and importing whole contexts over HTTP, a piece at a time."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.connecting import CallNotMade
from antiphon_kernel.client.tool_client import read_error
from antiphon_kernel.types.errors import no_kernel

_CONNECT_SECONDS: Final = 10.0
_PIECE: Final = 65_536
_ERROR_LINE: Final = b'{"type": "error"'


def export_context(
    address: KernelAddress,
    params: Mapping[str, str | Sequence[str]],
    silence: float | None = None,
) -> Iterator[bytes]:
    """Yield an export as it arrives, in pieces of whole lines. Blocks while it waits.

    Args:
        params: as context.export takes them.
        silence: for how many seconds the kernel may say nothing.

    Raises:
        AntiphonError: what the kernel refused it with, or broke it off with; `no_kernel` if the
            kernel cannot be reached, or went away before all of it had arrived.
    """
    with closing(_connect(address)) as connection:
        try:
            connection.sock.settimeout(silence)
            connection.request("GET", _target(address, "export", params), headers=address.headers)
            response = connection.getresponse()
            _check(response)
            lines = _whole_lines(response)
            is_lines = params.get("format", "jsonl") in ("jsonl", "replay")
            yield from _checked(lines) if is_lines else lines
        except (OSError, HTTPException) as error:
            raise no_kernel(
                f"The kernel went away before the export was whole ({error}): what has arrived"
                " cannot be imported. Export again.",
            ) from error


def import_context(
    address: KernelAddress, pieces: Iterable[bytes], params: Mapping[str, str]
) -> dict[str, Any]:
    """Import an export that comes in pieces; the result of context.import. Blocks until then.

    Args:
        params: as context.import takes them, without the text.

    Raises:
        AntiphonError: what the kernel refused it with; `no_kernel` if the kernel cannot be reached,
            or went away before it answered.
    """
    with closing(_connect(address)) as connection:
        headers = {**address.headers, "Transfer-Encoding": "chunked"}
        target = _target(address, "import", params)
        try:
            # Who refuses it may have answered before all of it was sent.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request("POST", target, iter(pieces), headers, encode_chunked=True)
            response = connection.getresponse()
            _check(response)
            made: dict[str, Any] = json.loads(response.read())
            return made
        except (OSError, HTTPException) as error:
            raise no_kernel(
                f"The kernel went away before it answered ({error}); the context is there whole or"
                " not at all. Look, then import again.",
            ) from error


def _whole_lines(response: HTTPResponse) -> Iterator[bytes]:
    """Cut an answer at ends of lines; raises HTTPException if it is broken off."""
    waiting = bytearray()
    while piece := response.read1(_PIECE):
        head, end, rest = piece.rpartition(b"\n")
        waiting += head + end
        if end:
            yield bytes(waiting)
            waiting.clear()
        waiting += rest
    if waiting:
        yield bytes(waiting)


def _checked(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pass lines of JSON on; raises AntiphonError at the line that says why they break off."""
    for piece in pieces:
        at = 0 if piece.startswith(_ERROR_LINE) else piece.find(b"\n" + _ERROR_LINE) + 1
        if at or piece.startswith(_ERROR_LINE):
            yield piece[:at]
            raise read_error(json.loads(piece[at:].splitlines()[0])["error"])
        yield piece


def _connect(address: KernelAddress) -> HTTPConnection:
    path, parts = address.reachable_socket, urlsplit(address.http)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.netloc, timeout=_CONNECT_SECONDS)
    try:
        if path is not None:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(str(path))
        else:
            connection.connect()
    except OSError as error:
        raise CallNotMade(
            f"No kernel answers at {path or address.http} ({error}). Is it running?"
        ) from error
    connection.sock.settimeout(None)
    return connection


def _target(
    address: KernelAddress, endpoint: str, params: Mapping[str, str | Sequence[str]]
) -> str:
    return f"{urlsplit(address.http).path.rstrip('/')}/{endpoint}?{urlencode(params, doseq=True)}"


def _check(response: HTTPResponse) -> None:
    if response.status == 200:
        return
    try:
        error = json.loads(response.read())["error"]
    except (ValueError, KeyError, TypeError) as wrong:
        raise HTTPException(f"HTTP status {response.status}") from wrong
    raise read_error(error)
