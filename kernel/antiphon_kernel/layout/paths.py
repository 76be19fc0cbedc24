"""Paths by which models name parts of a context, and the ids of turns and calls in them.

One grammar, one parser. The ids are derived from block ids: stable, and another in each fork.

::

    ar:TURN.user.prompt                   ar:TURN.assistant.completion
    ar:TURN.react.notes.CALL              ar:TURN.react.thinking.CALL
    ar:TURN.NAME                          (see `ARTIFACTS` for every NAME)
    fi:TURN.user.attachments/FILE         fi:TURN.files/FILE
    tc:TURN.CALL.call                     tc:TURN.CALL.result
    so:sources_pool[1-3,5]                su:TURN.conv.range.summary

TURN is ``turn_<milliseconds>_<6 hex digits>``, CALL is ``tc_<12 hex digits>``. Where several blocks
would have one path, all but the first created one have ``~<6 hex digits>`` at the end. In FILE,
``%``, ``:``, ``~``, brackets, white space, control characters and what would lead out of a folder
are percent-encoded.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias
from urllib.parse import unquote_to_bytes

from antiphon_kernel.types.quoting import quote
from antiphon_kernel.types.records import TextSplice

MAX_PATH: Final = 8_192
"""Code points of a path."""

MAX_RANGES: Final = 100
"""Ranges in one selector."""

ARTIFACTS: Final = (
    *("user.prompt", "user.message", "assistant.completion", "assistant.error", "react.notes"),
    *("react.thinking", "system.message", "drift", "block"),
)
"""Names of what stands in a turn and is neither a file nor a tool call."""


class PathError(ValueError):
    """A text is no path of a context."""


@dataclass(frozen=True, slots=True)
class BlockPath:
    """Path of one block."""

    scheme: str
    """`ar` of a text, `fi` of a file, `tc` of a call or its result, `su` of a summary."""
    turn: str
    name: str
    """Rest of it, behind the turn: `react.notes.CALL`, `files/FILE`, `CALL.result`."""
    suffix: str | None = None

    def __str__(self) -> str:
        tail = f"~{self.suffix}" if self.suffix is not None else ""
        return f"{self.scheme}:{self.turn}.{self.name}{tail}"


def file_path(turn: str, place: str, file: str, suffix: str | None = None) -> BlockPath:
    """Return the path of a file of a turn: of `files`, or of `user.attachments`."""
    name = _escape(file, folders=place == "files")
    return BlockPath("fi", turn, f"{place}/{name}", suffix)


def summary_path(turn: str, suffix: str | None = None) -> BlockPath:
    """Return the path of a summary that models read from."""
    return BlockPath("su", turn, _SUMMARY, suffix)


@dataclass(frozen=True, slots=True)
class SourcesPath:
    """Sources of the pool by number; the whole pool without ranges."""

    ranges: tuple[tuple[int, int], ...] = ()
    """First and last number of each range, both included."""

    def __str__(self) -> str:
        if not self.ranges:
            return "so:sources_pool"
        shown = (str(a) if a == b else f"{a}-{b}" for a, b in self.ranges)
        return f"so:sources_pool[{','.join(shown)}]"

    def __contains__(self, number: int) -> bool:
        return not self.ranges or any(first <= number <= last for first, last in self.ranges)


LayoutPath: TypeAlias = BlockPath | SourcesPath

_TURN_ID = r"turn_\d{1,15}_[0-9a-f]{6}"
_CALL_ID = r"tc_[0-9a-f]{12}"
_HASH = r"~[0-9a-f]{6}"
_DERIVED: Final = re.compile(
    "|".join(rf"{one}(?![0-9a-f])" for one in (_TURN_ID, _CALL_ID, _HASH)), re.ASCII
)
_NUMBER = r"[1-9]\d{0,8}"
_SOURCES = re.compile(r"so:sources_pool(?:\[(?P<ranges>[0-9,-]+)\])?", re.ASCII)
_RANGE = re.compile(rf"({_NUMBER})(?:-({_NUMBER}))?", re.ASCII)
_SCHEME = re.compile(r"(?:ar|fi|tc|so|su):")


def is_path(text: str) -> bool:
    """Return whether a text is meant as a path: it begins like one."""
    return _SCHEME.match(text) is not None


def parse_path(text: str) -> LayoutPath:
    """Read a path.

    Raises:
        PathError: if it is none.
    """
    if len(text) > MAX_PATH:
        raise PathError(f"a path has at most {MAX_PATH} code points, this has {len(text)}")
    scheme, _, rest = text.partition(":")
    if (form := _FORMS.get(scheme)) and (found := form.fullmatch(rest)):
        turn, name, suffix = found.groups()
        place, _, file = name.partition("/")
        if file:
            return file_path(turn, place, _unescape(file), suffix)
        return BlockPath(scheme, turn, name, suffix)
    if found := _SOURCES.fullmatch(text):
        return _sources(found["ranges"])
    raise PathError(
        f"{quote(text)} is not a path: expected one as context.layout shows them, such as"
        " ar:turn_1770603271112_2f81ad.user.prompt"
    )


def _unescape(file: str) -> str:
    try:
        encoded = file.encode("utf-8", "surrogatepass")
        return unquote_to_bytes(encoded).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise PathError(f"{quote(file)} is not percent-encoded UTF-8") from error


_SUMMARY: Final = "conv.range.summary"
_NAMES: Final = {
    "ar": "|".join((*map(re.escape, ARTIFACTS), rf"react\.(?:notes|thinking)\.{_CALL_ID}")),
    "fi": r"(?:user\.attachments|files)/[^~]+",
    "tc": rf"{_CALL_ID}\.(?:call|result)",
    "su": re.escape(_SUMMARY),
}
_FORMS: Final = {
    scheme: re.compile(rf"({_TURN_ID})\.({names})(?:~([0-9a-f]{{6}}))?", re.ASCII)
    for scheme, names in _NAMES.items()
}
"""Form of what stands behind each scheme: turn, name and suffix."""


def _sources(selector: str | None) -> SourcesPath:
    if selector is None:
        return SourcesPath()
    said = selector.split(",", MAX_RANGES)
    if len(said) > MAX_RANGES:
        raise PathError(f"a selector has at most {MAX_RANGES} ranges")
    ranges: list[tuple[int, int]] = []
    for part in said:
        span = _RANGE.fullmatch(part)
        if span is None:
            raise PathError(f"{quote(part)} is not a range of numbers from 1, such as 3 or 1-5")
        first = int(span[1])
        last = int(span[2] or span[1])
        if last < first:
            raise PathError(f"the range {part} ends before it begins")
        ranges.append((first, last))
    return SourcesPath(tuple(ranges))


_ESCAPED = re.compile(r"[%:~\[\]\s\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def _escape(name: str, *, folders: bool) -> str:
    """Percent-encode a file's name so that it is read back and leads out of no folder."""
    escaped = _ESCAPED.sub(lambda found: _percent(found[0]), name)
    parts = [_percent(part) if part in (".", "..") else part for part in escaped.split("/")]
    joined = parts[0]
    for before, part in itertools.pairwise(parts):
        joined += ("/" if folders and before and part else "%2F") + part
    return joined


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def block_hash(block: str, length: int = 6) -> str:
    """Return the first hex digits of the hash of a block's id."""
    return sha256(block.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def turn_id(block: str, created: int) -> str:
    """Return the id of the turn that a block of this id, created in this millisecond, begins."""
    return f"turn_{created}_{block_hash(block)}"


def tool_call_id(block: str) -> str:
    """Return the id of the call that a block of this id is."""
    return f"tc_{block_hash(block, 12)}"


def copied_ids(block: str, copy: str, created: int) -> dict[str, str]:
    """Return what is derived from the id of a block, by that which is from the id of its copy."""
    return {
        turn_id(block, created): turn_id(copy, created),
        tool_call_id(block): tool_call_id(copy),
        f"~{block_hash(block)}": f"~{block_hash(copy)}",
    }


def rename_derived(text: str, names: Mapping[str, str]) -> list[TextSplice]:
    """Return the splices that rename derived ids in a text; each is as long as before.

    Args:
        names: as `copied_ids` gives them.
    """
    found = ((one.start(), one[0], names.get(one[0])) for one in _DERIVED.finditer(text))
    return [TextSplice(at, len(old), new) for at, old, new in found if new is not None]
