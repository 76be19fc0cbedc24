"""A kernel given by its address instead of its folder."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from antiphon.cli.errors import CommandError
from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.types.constants import ExitCode

_SCHEMES = {"ws": "http", "wss": "https", "http": "http", "https": "https"}


def parse_kernel_url(url: str) -> tuple[KernelAddress, str | None]:
    """The kernel that `url` leads to, and the context if it names one.

    Takes what `antiphon invite` prints, and `sync` or `http` of `antiphon serve --json`, with
    `?token=...`, and with `/` and a context after `sync` if it is not to be the default one.

    Raises:
        Failure: if it cannot be the address of a kernel.
    """
    try:
        parts = urlsplit(url)
        scheme = _SCHEMES.get(parts.scheme)
        fit = scheme is not None and parts.hostname and (parts.port or 1) > 0
    except ValueError:
        parts, scheme, fit = urlsplit(""), None, False
    if not fit:
        raise CommandError(
            f"{_without_token(url)!r} is not the address of a kernel: expected"
            " ws://HOST:PORT/sync?token=..., as `antiphon invite` prints it.",
            ExitCode.USAGE,
        )
    base, mark, context = parts.path.partition("/sync")
    if not mark:
        base = parts.path.rstrip("/")
    http = f"{scheme}://{parts.netloc}{base}"
    tokens = parse_qs(parts.query).get("token", [])
    address = KernelAddress(
        pid=0,
        kernel="",
        sync=f"{http.replace('http', 'ws', 1)}/sync",
        http=http,
        token=tokens[0] if tokens else None,
    )
    return address, context.strip("/") or None


def _without_token(url: str) -> str:
    return re.sub(r"(?<=token=)[^&#]+", "...", url)
