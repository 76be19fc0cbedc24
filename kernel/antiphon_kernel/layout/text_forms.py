"""Text forms of what models read: the same bytes for the same blocks, whenever they are rendered.

Items of the stream, and the tail behind it: the sources of a context by number, and the
announcement. The tail is made anew for each request, never stored and never cached.
"""

from __future__ import annotations

import json
import posixpath
import re
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from antiphon_kernel.layout.arrange import ItemType, Layout, LayoutBlock, LayoutItem
from antiphon_kernel.layout.paths import BlockPath, SourcesPath, is_path
from antiphon_kernel.messages import JOIN
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.drift import drift_origin
from antiphon_kernel.types.enums import ANSWERING_KINDS, BlockKind, PrincipalKind, Role
from antiphon_kernel.types.frozen_json import thaw
from antiphon_kernel.types.json_validation import read_json
from antiphon_kernel.types.media_types import PLAIN_TEXT, is_text_type
from antiphon_kernel.types.quoting import quote

BETWEEN: Final = "\n\n"
"""Between two items of the stream."""

_READER: Final = "AI Agent"
"""Name of the reader in its own stream."""

_MAX_INLINE_JSON: Final = 4_000
"""Code points of a JSON result that is shown inside its status."""


RESULT_HEAD: Final = 14_000
"""Code points of the beginning of a long result that models are given."""

RESULT_TAIL: Final = 6_000
"""Code points of its end."""


@dataclass(frozen=True, slots=True)
class LayoutReader:
    """The model that reads: it decides which authors are named."""

    model: str | None
    """Id of its principal; None names every model."""
    names_people: bool
    """Several people have written, so each is named."""
    is_plain: bool = False
    """It calls no tools, so it is given what was said, without headers and paths."""
    join: str = BETWEEN
    """Between two texts that are sent to it as one: `JOIN` only where one person alone speaks."""

    @classmethod
    def of(
        cls, layout: Layout, model: str | None = None, *, is_plain: bool = False
    ) -> LayoutReader:
        """Return the reader of a whole layout.

        Args:
            model: id of the model's principal; the only model that has written, if absent.
        """
        authors = layout.authors
        people = [one for one in authors if one.kind == PrincipalKind.HUMAN]
        models = [one.id for one in authors if one.kind in ANSWERING_KINDS]
        if model is None and len(models) == 1:
            model = models[0]
        is_one_voice = is_plain and len(people) <= 1 and not {*models} - {model}
        return cls(model, len(people) > 1, is_plain, JOIN if is_one_voice else BETWEEN)

    def wrote(self, block: LayoutBlock) -> bool:
        """Return whether a block is the reader's own."""
        return block.author.id == self.model

    def speaker(self, block: LayoutBlock) -> str:
        """Return the name by which the author of a text goes."""
        return _READER if self.wrote(block) else block.author.name


_SPOKEN: Final = (
    *(ItemType.NOTES, ItemType.ASSISTANT_COMPLETION, ItemType.THINKING),
    ItemType.SUMMARY,
)
"""Types whose form names the author anyway, or whose author says nothing."""


_MARK: Final = re.compile(
    r"^\[(?=TURN |USER |SYSTEM |CONVERSATION |ERROR\]|FILE\]|DRIFT\]|BLOCK\]|AI Agent |path: "
    r"|react\.tool\.|[a-z0-9_-]+ (?:say|think)\]:|[a-z0-9_-]+\] \[)",
    re.MULTILINE,
)
"""Line of a text that would pass for the beginning of an item: a backslash goes before it."""


def item_text(item: LayoutItem, reader: LayoutReader) -> str:
    """Return an item as it is read; empty of one that a plain reader is not given."""
    author = item.block.author
    if not reader.is_plain:
        is_clear = (
            reader.wrote(item.block)
            or not item.is_block
            or item.type in _SPOKEN
            or item.block.is_drift
            or author.kind in (PrincipalKind.SYSTEM, PrincipalKind.SHELL)
            or (author.kind == PrincipalKind.HUMAN and not reader.names_people)
        )
        said = BETWEEN.join(_parts(item, reader))
        return said if is_clear else f"[{author.name}] {said}"
    if not item.is_block:
        return ""
    if item.block.is_drift:  # on lines of its own, whatever is between it and the next text
        return f"\n{drift_text(item.block)}\n"
    if not item.block.text.strip():
        return ""
    is_named = not reader.wrote(item.block) and (
        author.kind in ANSWERING_KINDS
        or (author.kind == PrincipalKind.HUMAN and reader.names_people)
    )
    return f"{author.name}: {item.block.text}" if is_named else item.block.text


def _parts(item: LayoutItem, reader: LayoutReader) -> list[str]:
    block = item.block
    if item.type is ItemType.TURN_HEADER:
        return [f"[TURN {item.turn}] ts={iso_time(block.created)}"]
    text = _MARK.sub(r"\\\g<0>", block.text.rstrip("\n"))
    if block.is_drift:
        text = shortened(text, item.path) if block.kind == BlockKind.TOOL_RESULT else text
        return [f"[DRIFT] {block_title(block)}\n[path: {item.path}]\n{text}".rstrip()]
    match item.type:
        case ItemType.NOTES | ItemType.ASSISTANT_COMPLETION:
            return [f"[{reader.speaker(block)} say]: {text}"]
        case ItemType.THINKING:
            return [f"[{reader.speaker(block)} think]: {text}"]
        case ItemType.ASSISTANT_ERROR:
            return [f"[ERROR]: {text}"]
        case ItemType.TOOL_CALL:
            status = {**_status(item), "params": thaw(block.parameters)}
            return [f"[{item.type}] (JSON)\n{_json(status)}"]
        case ItemType.TOOL_RESULT:
            return _result_parts(item, shortened(text, item.path))
        case ItemType.USER_ATTACHMENT:
            return _attachment_parts(item, text)
        case _:
            return [f"{_title(item)}\n[path: {item.path}]\n{text}"]


def _title(item: LayoutItem) -> str:
    match item.type, item.block.role:
        case ItemType.SUMMARY, _:
            return "[CONVERSATION SUMMARY]"
        case ItemType.USER_PROMPT | ItemType.SYSTEM_MESSAGE, Role.SYSTEM:
            return "[SYSTEM MESSAGE]"
        case ItemType.USER_PROMPT | ItemType.USER_MESSAGE, _:
            return "[USER MESSAGE]"
        case ItemType.FILE, _:
            return f"[FILE] {_line(item.block.file or '')}"
        case _:
            return "[BLOCK]"


def _attachment_parts(item: LayoutItem, text: str) -> list[str]:
    block = item.block
    name = _line(block.file or "").rpartition("/")[2]
    lines = [f"[USER ATTACHMENT] {name} | {block.media_type or PLAIN_TEXT}"]
    if "summary" in block.metadata:
        lines.append(f"summary: {_line(str(block.metadata['summary']))}")
    lines.append(f"[path: {item.path}]")
    lines.append(f"[physical_path: {item.turn}/attachments/{str(item.path).partition('/')[2]}]")
    head = "\n".join(lines)
    if block.media_type is not None and not is_text_type(block.media_type):
        # As many characters as the bytes have in base64, without its padding.
        size = -(-(block.blob_bytes or 0) * 4 // 3)
        tag = "image" if block.media_type.startswith("image/") else "document"
        return [head, f"<{tag} media_type={block.media_type} b64_len={size}>"]
    return [head, text] if text else [head]


def drift_text(block: LayoutBlock) -> str:
    """Return a drift, or a part of one, as it is said without paths."""
    return f"[DRIFT] {block_title(block)}\n{block.text}".rstrip()


def block_title(block: LayoutBlock) -> str:
    """Return who said a block, and what it is; of a drift, where it came from."""
    if (origin := drift_origin(block.metadata)) is not None:
        version, kind = origin.version, block.drift_kind
        return _line(f"{kind} from {origin.label}, version {version}, by {origin.by}")
    said = "say" if block.kind == BlockKind.TEXT else block.kind
    about = block.tool_name or block.file or ""
    code = f", exit code {block.exit_code}" if block.exit_code else ""
    return _line(f"{block.author.name} {said} {about}".rstrip() + code)


def shortened(text: str, path: BlockPath | None) -> str:
    """Return the text of a result; of a long one beginning and end, with the path of the rest."""
    left_out = len(text) - RESULT_HEAD - RESULT_TAIL
    if left_out <= 0:
        return text
    head, tail = text[:RESULT_HEAD], text[-RESULT_TAIL:]
    first, last = head.count("\n"), text.count("\n") - tail.count("\n")
    said = f"[{left_out} characters left out, in the lines {first} to {last} of {path}]"
    return f"{head}\n{said}\n{tail}"


def _status(item: LayoutItem) -> dict[str, Any]:
    """Return the fields by which a call or a result is known."""
    return {"tool_id": tool_name(item), "tool_call_id": item.round}


def tool_name(item: LayoutItem) -> str:
    """Return the name of the tool that is called."""
    return item.tool if item.tool is not None and item.tool.strip() else "tool"


def _result_parts(item: LayoutItem, text: str) -> list[str]:
    block = item.block
    value: Any = None
    if len(block.text) <= _MAX_INLINE_JSON and block.text.lstrip().startswith(("{", "[")):
        with suppress(ValueError):
            value = read_json(block.text)
    parts = []
    if block.file is None:
        status = _status(item)
        if block.exit_code is not None:
            status["exit_code"] = block.exit_code
        for name in ("is_error", "truncated"):
            if getattr(block, name):
                status[name] = True
        if not block.is_finished:
            status["status"] = str(block.status)
        if value is not None:
            status["result"] = value
        parts.append(f"[{item.type}] (JSON status)\n{_json(status)}")
    if block.file is not None or (value is None and text):
        path = block.file if block.file is not None and is_path(block.file) else item.path
        parts.append(f"[{item.type}] (artifact block)\n[path: {path}]\n{text}")
    return parts


_encode: Final = json.JSONEncoder(ensure_ascii=False).encode


def _json(value: Any, line: str = "\n") -> str:
    """Return what `json.dumps` with an indent of 2 does, which takes five times as long."""
    inner = line + "  "
    if value and isinstance(value, dict):
        members = [f"{_encode(key)}: {_json(one, inner)}" for key, one in value.items()]
        return f"{{{inner}{(',' + inner).join(members)}{line}}}"
    if value and isinstance(value, list):
        members = [_json(one, inner) for one in value]
        return f"[{inner}{(',' + inner).join(members)}{line}]"
    return _encode(value)


def _line(text: str) -> str:
    """Return a text on one line."""
    return " ".join(text.split())


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
    files: tuple[str, ...] = ()
    """Changes of files that the context refers to, since it does: path and difference."""
    missing: tuple[str, ...] = ()
    """Servers whose tools are not there, with the reason."""


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
    lines += [f"[FILE CHANGED] {one}" for one in announced.files]
    lines += [f"[TOOLS MISSING] {one}" for one in announced.missing]
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


def tail_texts(
    sources: Sequence[PoolSource], announced: Announcement | None = None
) -> tuple[str, ...]:
    """Return what stands behind the stream, is made anew for each request and never cached."""
    shown = (sources_text(sources),) if sources else ()
    return (*shown, announcement_text(announced)) if announced is not None else shown
