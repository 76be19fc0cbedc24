"""Tail behind what a model reads of a context: its sources by number, and the announcement.

It is made anew for each request, never stored and never cached.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from antiphon_kernel.layout.paths import SourcesPath
from antiphon_kernel.types.clock import iso_time
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


_RANGES_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Announcement:
    """State of a turn and of its context at one moment."""

    time: int
    """Milliseconds since the epoch."""
    round: int | None = None
    """Number of the round that begins, from 1."""
    max_rounds: int | None = None
    budget: tuple[str, ...] = ()
    """Parts of the budget that are used, as `budget_text` says them."""
    present: tuple[str, ...] = ()
    """Everybody who is here beside the model, as `reader_text` says it."""
    changes: tuple[str, ...] = ()
    """Changes by others since the model last looked, of blocks that it had read, as `change_text`
    says them."""
    unlisted: int = 0
    """Further blocks that others have changed."""


def announcement_text(announced: Announcement) -> str:
    """Return an announcement as models read it."""
    lines = ["[ANNOUNCE]", f"time: {iso_time(announced.time)}"]
    if announced.round is not None:
        of = f" of {announced.max_rounds}" if announced.max_rounds is not None else ""
        lines.append(f"round: {announced.round}{of}")
    if announced.budget:
        lines.append(f"budget: {', '.join(announced.budget)}")
    lines.append(f"here: {', '.join(announced.present) or 'nobody else'}")
    if announced.changes:
        lines.append("changed by others since you last looked (lines count from 0):")
        lines += [f"- {one}" for one in announced.changes]
        if announced.unlisted:
            lines.append(f"- and {announced.unlisted} more blocks")
    return "\n".join(lines)


def budget_text(used: float, limit: float, unit: str) -> str:
    """Return how much of a budget is used; the unit is `tokens`, `USD` or `s`."""
    return f"{_number(used)} of {_number(limit)} {unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4f}".rstrip("0")


def reader_text(name: str, place: str | None = None, activity: str | None = None) -> str:
    """Return who is here, at the path or name of a block, and what they do there: `typing`."""
    if place is None:
        return name
    return f"{name} ({activity} in {place})" if activity is not None else f"{name} (in {place})"


def change_text(
    place: str, author: str, lines: Sequence[tuple[int, int]] = (), removed: int = 0
) -> str:
    """Return what one author has changed of the block at a place.

    Args:
        lines: first and last of each run of lines, counted from 0, in which text is new, or in or
            before which text was removed; none of a content that is no text.
        removed: code points that were removed.
    """
    said: list[str] = []
    if lines:
        every = [str(first) if first == last else f"{first}-{last}" for first, last in lines]
        word = "line" if len(every) == 1 and "-" not in every[0] else "lines"
        more = len(every) - _RANGES_SHOWN
        others = f" and {more} more places" if more > 0 else ""
        said.append(f"{word} {', '.join(every[:_RANGES_SHOWN])}{others}")
    elif not removed:
        said.append("its content")
    if removed:
        said.append(f"{removed} characters removed")
    return f"{place} by {author}: {', '.join(said)}"


@dataclass(frozen=True, slots=True)
class LayoutTail:
    """Part behind the stream that is made anew for each request and never cached."""

    sources: tuple[PoolSource, ...] = ()
    announcement: Announcement | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the parts that there are, in order."""
        announced = self.announcement
        sources = (sources_text(self.sources),) if self.sources else ()
        return (*sources, announcement_text(announced)) if announced is not None else sources
