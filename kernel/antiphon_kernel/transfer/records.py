"""The form in which a context leaves a kernel and comes into another: lines of JSON.

The first line is about the context, then comes one for each block in document order, and before
the first block that names a principal one about that principal, before the first block with which a
file is attached one with its bytes. The last line says how many blocks
there are: an export without it has been broken off. What is absent in a line has its default.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from antiphon_kernel.types.errors import AntiphonError, invalid_params
from antiphon_kernel.types.json_validation import unique_names
from antiphon_kernel.types.quoting import truncate
from antiphon_kernel.types.records import BlockHeader

FORMAT: Final = 2
"""The version of this form."""


class _RecordLine(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


class ContextLine(_RecordLine):
    """Context of the other lines."""

    type: Literal["context"] = "context"
    format: int = FORMAT
    context_id: str
    label: str
    version: int
    """The context's version that was exported."""
    creator: str | None = None
    """Username of who made it."""
    source_context: str | None = None
    """Id of the context that it is a fork of."""
    source_label: str | None = None
    source_version: int | None = None
    """The version of that context that was copied."""


class PrincipalLine(_RecordLine):
    """Somebody who is named in other lines."""

    type: Literal["principal"] = "principal"
    id: str
    username: str
    kind: str


class RunLine(_RecordLine):
    """Code points from `start` to `end`, who wrote them, in which version, and when."""

    start: int
    end: int
    principal: str
    version: int
    time: str
    section: str | None = None
    """Path of the text in a content with a schema; absent where the block is one text."""


class BlobLine(_RecordLine):
    """The bytes of a file that is attached with one or more of the blocks after this line."""

    type: Literal["blob"] = "blob"
    sha256: str
    data: str
    """As base64."""


class BlockLine(_RecordLine):
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
    """Schema of the content; absent if it is one text."""
    content: Any = None
    """As `block.get` gives it, if there is a schema."""


class EndLine(_RecordLine):
    """The last one: the export is whole."""

    type: Literal["end"] = "end"
    blocks: int
    """How many it has."""


class ErrorLine(_RecordLine):
    """In place of the last one: why the export has been broken off."""

    type: Literal["error"] = "error"
    error: dict[str, Any]
    """Code, message and details."""


Line = ContextLine | PrincipalLine | BlobLine | BlockLine | EndLine | ErrorLine
_UNTYPED: Final = "it has no `type`, which is context, principal, blob, block or end"
_LINES: Final[TypeAdapter[Line]] = TypeAdapter(Annotated[Line, Field(discriminator="type")])

_DEFAULTS: Final = {
    name: BlockHeader._field_defaults.get(name) for name in BlockHeader._fields if name != "id"
}


def as_line(line: Line) -> str:
    """Return a line of an export as one JSON document, with its line end."""
    return json.dumps(line.model_dump(by_alias=True, exclude_none=True), ensure_ascii=False) + "\n"


def blob_line(data: bytes) -> BlobLine:
    """Return the line of an attached file."""
    return BlobLine(sha256=sha256(data).hexdigest(), data=b64encode(data).decode())


def header_fields(header: BlockHeader) -> dict[str, Any]:
    """The fields of a header that are not as they are by default."""
    found = ((name, getattr(header, name)) for name in _DEFAULTS)
    return {name: value for name, value in found if value != _DEFAULTS[name]}


def read_line(number: int, line: bytes) -> Line:
    """Read what `as_line` wrote.

    Args:
        number: of the line in the export, from 1.

    Raises:
        AntiphonError: invalid_params, naming the line.
    """
    try:
        read: Line = _LINES.validate_json(line)
        json.loads(line, object_pairs_hook=unique_names)  # the validator takes the last one
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "json_invalid" and _has_half_surrogate(line):
            raise refusal(number, "it has half a surrogate pair; write whole characters") from error
        where = truncate(".".join(map(str, first["loc"])))
        said = first["msg"].replace(" at line 1 column ", " at column ")
        what = _UNTYPED if first["type"] == "union_tag_not_found" else said
        raise refusal(number, f"{where}: {what}" if where else what) from error
    except ValueError as error:
        raise refusal(number, str(error)) from error
    if isinstance(read, ContextLine) and read.format != FORMAT:
        raise refusal(number, f"it has the format {read.format}, this antiphon reads {FORMAT}")
    return read


def _has_half_surrogate(line: bytes) -> bool:
    try:
        json.dumps(json.loads(line), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        return False
    return False


def refusal(line: int, what: str) -> AntiphonError:
    """Return the error of a line that cannot be imported."""
    return invalid_params(
        f"Line {line} is not as `antiphon export --format jsonl` writes it: {what}."
        " Nothing was imported.",
        line=line,
    )
