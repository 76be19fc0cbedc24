"""Sources that a context refers to by number, as values and as text."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from antiphon_kernel.layout.paths import SourcesPath
from antiphon_kernel.types.quoting import quote

SOURCES_SHOWN: Final = 100
"""Sources that are listed behind the stream, the last ones."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_UNSEEN: Final = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class SourceError(ValueError):
    """A text names no source."""


@dataclass(frozen=True, slots=True)
class PoolSource:
    """A page or a file, under the number that it has for good."""

    sid: int
    url: str | None = None
    path: str | None = None
    """Path of a file of the project."""
    title: str | None = None
    text: str | None = None
    """Content, as far as somebody has read it."""

    @property
    def place(self) -> str:
        """Return the URL or the path, which no other source of the pool has."""
        return self.url or self.path or ""


def normal_url(url: str) -> str:
    """Return the form in which the pool keeps a URL: the same for all that lead to one page.

    Raises:
        SourceError: if it is no URL of the web.
    """
    if _UNSEEN.search(url):
        raise SourceError(f"{quote(url)} holds characters that a URL has not, such as spaces")
    try:
        parts = urlsplit(unicodedata.normalize("NFC", url))
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise SourceError(f"{quote(url)} is not a URL ({error})") from error
    if parts.scheme not in _DEFAULT_PORTS or not host:
        raise SourceError(f"{quote(url)} is not a URL that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise SourceError("a URL with a user name or a password is not kept")
    place = f"[{host}]" if ":" in host else host.casefold()
    if port is not None and port != _DEFAULT_PORTS[parts.scheme]:
        place += f":{port}"
    return urlunsplit((parts.scheme, place, parts.path or "/", parts.query, ""))


def normal_path(path: str) -> str:
    """Return the form in which the pool keeps the path of a file.

    Raises:
        SourceError: if it is no path inside the project.
    """
    normal = posixpath.normpath(unicodedata.normalize("NFC", path))
    if not path.strip() or _CONTROL.search(path):
        raise SourceError(f"{quote(path)} is not a path: it is a line without control characters")
    if posixpath.isabs(normal) or normal.split("/")[0] in ("..", "."):
        raise SourceError(f"{quote(path)} is not a path inside the project, relative to its root")
    return normal


def sources_text(sources: Sequence[PoolSource]) -> str:
    """Return the pool as models read it: the last sources, one a line."""
    shown = sources[-SOURCES_SHOWN:]
    lines = ["[SOURCES POOL]"]
    if sources:
        lines.append(f"[path: {SourcesPath(((sources[0].sid, sources[-1].sid),))}]")
    if len(shown) < len(sources):
        left_out = SourcesPath(((sources[0].sid, sources[-len(shown) - 1].sid),))
        lines.append(f"({left_out} are not shown here)")
    for one in shown:
        title = " ".join(one.title.split()) if one.title is not None else ""
        lines.append(f"{one.sid}. {title} | {one.place}" if title else f"{one.sid}. {one.place}")
    return "\n".join(lines)
