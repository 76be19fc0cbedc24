"""From where a request may come: this machine, by the names that it has for itself.

A page in a browser reaches the loopback interface too. It cannot set `Host` or `Origin`: a page of
another origin says so, and a name that somebody else has pointed at this machine is in `Host`.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from starlette.types import Scope

from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import quote

_LOCALHOST: Final = "localhost"


def check_source(scope: Scope) -> None:
    """Check the headers `Host` and `Origin` of a WebSocket or request that came over TCP.

    Any port is allowed, since SSH forwards ports under other numbers.

    Raises:
        AntiphonError: permission_denied.
    """
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    for host in hosts or [b""]:
        if not _is_loopback(b"//" + host):
            raise AntiphonError(
                ErrorCode.PERMISSION_DENIED,
                f"The kernel answers as localhost or 127.0.0.1, not as {_shown(host)}: use one of"
                " those in the address, and forward the port through SSH from another machine.",
            )
    for name, origin in scope["headers"]:
        # In another scheme, as in `tauri://localhost`, the name of an app stands there.
        is_web = origin.lower().startswith((b"http://", b"https://"))
        if name == b"origin" and not (is_web and _is_loopback(origin)):
            raise AntiphonError(
                ErrorCode.PERMISSION_DENIED,
                f"Pages from {_shown(origin)} are not answered, only those from this machine:"
                " serve the page from localhost, or send no Origin.",
            )


def _shown(value: bytes) -> str:
    return quote(value.decode("latin-1"))


@lru_cache(maxsize=64)
def _is_loopback(url: bytes) -> bool:
    try:
        parts = urlsplit(url.decode("ascii"))
        name, _ = parts.hostname or "", parts.port
        if parts.username is not None or parts.path or parts.query or parts.fragment:
            return False
        return name == _LOCALHOST or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
