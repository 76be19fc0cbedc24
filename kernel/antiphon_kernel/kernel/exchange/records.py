"""The form in which a context leaves a kernel and comes into another: lines of JSON.

The first line is about the context, then comes one for each principal, then one for each block in
document order. What is absent in a line has its default.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import shortened
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.wire.json_text import unique_names

FORMAT: Final = 1
"""The version of this form."""


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


class ContextLine(_Line):
    """What the others belong to."""

    type: Literal["context"] = "context"
    format: int = FORMAT
    context_id: str
    label: str
    version: int
    """The context's version that was exported."""


class PrincipalLine(_Line):
    """Somebody who is named in other lines."""

    type: Literal["principal"] = "principal"
    id: str
    username: str
    kind: str


class RunLine(_Line):
    """Code points from `start` to `end`, who wrote them, in which version, and when."""

    start: int
    end: int
    principal: str
    version: int
    time: str
    section: str | None = None
    """Path of the text in a content with a schema; absent where the block is one text."""


class BlockLine(_Line):
    """A block: its header, its text or its content with a schema, and who wrote what is text."""

    type: Literal["block"] = "block"
    id: str
    version: int
    header: dict[str, Any]
    """Header fields that are not as they are by default."""
    text: str
    """Empty if there is a schema."""
    authors: list[RunLine]
    block_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    """What the content looks like; absent if it is one text."""
    content: Any = None
    """As `block.get` gives it, if there is a schema."""


AnyLine = Annotated[ContextLine | PrincipalLine | BlockLine, Field(discriminator="type")]
_UNTYPED: Final = "it has no `type`, which is context, principal or block"
_LINES: Final[TypeAdapter[ContextLine | PrincipalLine | BlockLine]] = TypeAdapter(AnyLine)

_DEFAULTS: Final = {
    field.name: field.default if field.default is not MISSING else None
    for field in fields(BlockHeader)
    if field.name != "id"
}


@dataclass(frozen=True, slots=True)
class Export:
    """A whole context."""

    context: ContextLine
    principals: tuple[PrincipalLine, ...]
    blocks: tuple[BlockLine, ...]

    def lines(self) -> Iterator[str]:
        """One JSON document a line, without line ends."""
        for line in (self.context, *self.principals, *self.blocks):
            yield json.dumps(line.model_dump(by_alias=True, exclude_none=True), ensure_ascii=False)


def header_fields(header: BlockHeader) -> dict[str, Any]:
    """The fields of a header that are not as they are by default."""
    found = ((name, getattr(header, name)) for name in _DEFAULTS)
    return {name: value for name, value in found if value != _DEFAULTS[name] and value != {}}


def read_export(text: str) -> Export:
    """Read what `Export.lines` wrote.

    Raises:
        AntiphonError: invalid_params, naming the line that is wrong.
    """
    read = list(_numbered(text.split("\n")))
    if not read or not isinstance(read[0], ContextLine):
        raise _refusal(1, "expected the line of the context")
    if read[0].format != FORMAT:
        raise _refusal(1, f"it has the format {read[0].format}, this antiphon reads {FORMAT}")
    principals = tuple(line for line in read if isinstance(line, PrincipalLine))
    blocks = tuple(line for line in read if isinstance(line, BlockLine))
    return Export(read[0], principals, blocks)


def _numbered(lines: Iterable[str]) -> Iterator[ContextLine | PrincipalLine | BlockLine]:
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                read = _LINES.validate_json(line)
                json.loads(line, object_pairs_hook=unique_names)  # the validator takes the last one
                yield read
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                where = shortened(".".join(map(str, first["loc"])))
                what = _UNTYPED if first["type"] == "union_tag_not_found" else first["msg"]
                raise _refusal(number, f"{where}: {what}" if where else what) from error
            except ValueError as error:
                raise _refusal(number, str(error)) from error


def _refusal(line: int, what: str) -> AntiphonError:
    return AntiphonError(
        ErrorCode.INVALID_PARAMS,
        f"Line {line} is not as `antiphon export --format jsonl` writes it: {what}."
        " Nothing was imported.",
        line=line,
    )
