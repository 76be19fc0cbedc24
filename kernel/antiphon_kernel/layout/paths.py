"""Paths by which models name parts of a context: one grammar, one parser.

::

    ar:TURN.user.prompt                   ar:TURN.assistant.completion
    ar:TURN.react.notes.CALL              ar:TURN.react.thinking.CALL
    ar:TURN.NAME                          (see `ARTIFACTS` for every NAME)
    fi:TURN.user.attachments/FILE         fi:TURN.files/FILE            fi:TURN.code.CALL
    tc:TURN.CALL.call                     tc:TURN.CALL.result
    tc:TURN.tool_calls.CALL.notice.json
    so:sources_pool[1-3,5]                su:TURN.conv.range.summary

TURN is ``turn_<milliseconds>_<6 hex digits>``, CALL is ``tc_<12 hex digits>``. Where several blocks
would have one path, all but the first created one have ``~<6 hex digits>`` at the end. In FILE,
``%``, ``:``, ``~``, brackets, white space, control characters and what would lead out of a folder
are percent-encoded.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args
from urllib.parse import unquote_to_bytes

from antiphon_kernel.types.quoting import quote

MAX_PATH: Final = 8_192
"""Code points of a path."""

MAX_RANGES: Final = 100
"""Ranges in one selector."""

ArtifactName = Literal[
    "user.prompt",
    "user.message",
    "assistant.completion",
    "assistant.error",
    "react.notes",
    "react.thinking",
    "system.message",
    "drift",
    "block",
]

ARTIFACTS: Final[tuple[ArtifactName, ...]] = get_args(ArtifactName)
"""Names of what stands in a turn and is neither a file nor a tool call."""

CallPart = Literal["call", "result", "notice"]
FilePlace = Literal["user.attachments", "files"]


class PathError(ValueError):
    """A text is no path of a context."""


@dataclass(frozen=True, slots=True)
class ArtifactPath:
    """Text of a turn."""

    turn: str
    name: ArtifactName
    call: str | None = None
    """The call that it leads to; of notes and thinking only."""
    suffix: str | None = None

    def __str__(self) -> str:
        call = f".{self.call}" if self.call is not None else ""
        return f"ar:{self.turn}.{self.name}{call}{_tail(self.suffix)}"


@dataclass(frozen=True, slots=True)
class FilePath:
    """Attachment of a turn's message, or file that the turn made."""

    turn: str
    place: FilePlace
    name: str
    suffix: str | None = None

    def __str__(self) -> str:
        name = _escape(self.name, folders=self.place == "files")
        return f"fi:{self.turn}.{self.place}/{name}{_tail(self.suffix)}"


@dataclass(frozen=True, slots=True)
class CodePath:
    """Code that a call runs."""

    turn: str
    call: str
    suffix: str | None = None

    def __str__(self) -> str:
        return f"fi:{self.turn}.code.{self.call}{_tail(self.suffix)}"


@dataclass(frozen=True, slots=True)
class CallPath:
    """Tool call, one of its results, or the notice about it."""

    turn: str
    call: str
    part: CallPart
    suffix: str | None = None

    def __str__(self) -> str:
        if self.part == "notice":
            return f"tc:{self.turn}.tool_calls.{self.call}.notice.json{_tail(self.suffix)}"
        return f"tc:{self.turn}.{self.call}.{self.part}{_tail(self.suffix)}"


@dataclass(frozen=True, slots=True)
class SummaryPath:
    """Summary that models read from."""

    turn: str
    suffix: str | None = None

    def __str__(self) -> str:
        return f"su:{self.turn}.conv.range.summary{_tail(self.suffix)}"


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


BlockPath: TypeAlias = ArtifactPath | FilePath | CodePath | CallPath | SummaryPath
"""Path of one block."""

LayoutPath: TypeAlias = BlockPath | SourcesPath

_TURN = r"(?P<turn>turn_\d{1,15}_[0-9a-f]{6})"
_CALL = r"(?P<call>tc_[0-9a-f]{12})"
_SUFFIX = r"(?:~(?P<suffix>[0-9a-f]{6}))?"
_NAMES = "|".join(re.escape(name) for name in ARTIFACTS)
_NUMBER = r"[1-9]\d{0,8}"

_ARTIFACT = re.compile(rf"ar:{_TURN}\.(?P<name>{_NAMES})(?:\.{_CALL})?{_SUFFIX}", re.ASCII)
_FILE = re.compile(
    rf"fi:{_TURN}\.(?P<place>user\.attachments|files)/(?P<name>[^~]+){_SUFFIX}", re.ASCII
)
_CODE = re.compile(rf"fi:{_TURN}\.code\.{_CALL}{_SUFFIX}", re.ASCII)
_PART = re.compile(rf"tc:{_TURN}\.{_CALL}\.(?P<part>call|result){_SUFFIX}", re.ASCII)
_NOTICE = re.compile(rf"tc:{_TURN}\.tool_calls\.{_CALL}\.notice\.json{_SUFFIX}", re.ASCII)
_SUMMARY = re.compile(rf"su:{_TURN}\.conv\.range\.summary{_SUFFIX}", re.ASCII)
_SOURCES = re.compile(r"so:sources_pool(?:\[(?P<ranges>[0-9,-]+)\])?", re.ASCII)
_RANGE = re.compile(rf"({_NUMBER})(?:-({_NUMBER}))?", re.ASCII)
_SCHEME = re.compile(r"(?:ar|fi|tc|so|su):")

_WITH_CALL: Final = ("react.notes", "react.thinking")


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
    found: LayoutPath | None = None
    match text[:3]:
        case "ar:":
            found = _artifact(text)
        case "fi:":
            found = _file(text)
        case "tc:":
            found = _call(text)
        case "su:":
            if one := _SUMMARY.fullmatch(text):
                found = SummaryPath(one["turn"], one["suffix"])
        case "so:":
            found = _sources(text)
    if found is None:
        raise PathError(
            f"{quote(text)} is not a path: expected one as context.layout shows them, such as"
            " ar:turn_1770603271112_2f81ad.user.prompt"
        )
    return found


def _artifact(text: str) -> ArtifactPath | None:
    one = _ARTIFACT.fullmatch(text)
    if one is None or (one["call"] is not None and one["name"] not in _WITH_CALL):
        return None
    name = next(name for name in ARTIFACTS if name == one["name"])
    return ArtifactPath(one["turn"], name, one["call"], one["suffix"])


def _file(text: str) -> FilePath | CodePath | None:
    if one := _CODE.fullmatch(text):
        return CodePath(one["turn"], one["call"], one["suffix"])
    one = _FILE.fullmatch(text)
    if one is None:
        return None
    place: FilePlace = "files" if one["place"] == "files" else "user.attachments"
    return FilePath(one["turn"], place, _unescape(one["name"]), one["suffix"])


def _call(text: str) -> CallPath | None:
    if one := _NOTICE.fullmatch(text):
        return CallPath(one["turn"], one["call"], "notice", one["suffix"])
    one = _PART.fullmatch(text)
    if one is None:
        return None
    part: CallPart = "call" if one["part"] == "call" else "result"
    return CallPath(one["turn"], one["call"], part, one["suffix"])


def _sources(text: str) -> SourcesPath | None:
    one = _SOURCES.fullmatch(text)
    if one is None:
        return None
    if one["ranges"] is None:
        return SourcesPath()
    said = one["ranges"].split(",", MAX_RANGES)
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


def _tail(suffix: str | None) -> str:
    return f"~{suffix}" if suffix is not None else ""


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


def _unescape(name: str) -> str:
    try:
        encoded = name.encode("utf-8", "surrogatepass")
        return unquote_to_bytes(encoded).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise PathError(f"{quote(name)} is not percent-encoded UTF-8") from error
