"""Lines of a replay: how a context came to be, edit by edit, without what is not for everybody.

The first line is about the context; a principal is named before the first line that has its id;
changes and presences follow in the order of their times; the last line says how many changes there
are: a replay without it has been broken off.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from antiphon_kernel.types.errors import invalid_params


class _ReplayPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ReplayHeader(_ReplayPart):
    """Context that is replayed."""

    type: Literal["replay"] = "replay"
    format: Literal[1] = 1
    """The version of this form."""
    context_id: str
    label: str
    started: int
    """When the first change was made, in milliseconds since the epoch."""


class ReplayPrincipal(_ReplayPart):
    """Somebody who writes or is present."""

    type: Literal["principal"] = "principal"
    id: str
    username: str
    kind: str
    colour: int
    """Slot of their colour in the context."""


class CreatedBlock(_ReplayPart):
    """A block that is new; structured content is shown as its rendered text."""

    edit: Literal["create"] = "create"
    block: str
    header: dict[str, Any]
    """Header fields that are not as they are by default; without the id."""
    text: str


class ChangedHeader(_ReplayPart):
    """Header fields of a block that have other values now; None takes one away."""

    edit: Literal["header"] = "header"
    block: str
    fields: dict[str, Any]


class SplicedText(_ReplayPart):
    """At code point `offset` of a block's text, `deleted` code points went and `inserted` came."""

    edit: Literal["splice"] = "splice"
    block: str
    offset: int
    deleted: int = 0
    inserted: str = ""


ReplayEdit = Annotated[CreatedBlock | ChangedHeader | SplicedText, Field(discriminator="edit")]


class ReplayChange(_ReplayPart):
    """One transaction; its edits follow one another."""

    type: Literal["change"] = "change"
    at: int
    """Milliseconds since the first change."""
    version: int
    """The version of the context after it."""
    by: str
    """Id of the principal."""
    operation: str
    edits: list[ReplayEdit]


class ReplayPresence(_ReplayPart):
    """Place of a session's cursor from now on."""

    type: Literal["presence"] = "presence"
    at: int
    session: str
    by: str
    """Id of the principal."""
    activity: str | None
    """None: the session has left."""
    block: str | None = None
    cursor: int | None = None
    anchor: int | None = None


class ReplayEnd(_ReplayPart):
    """The last line: the replay is whole."""

    type: Literal["end"] = "end"
    changes: int


ReplayLine = Annotated[
    ReplayHeader | ReplayPrincipal | ReplayChange | ReplayPresence | ReplayEnd,
    Field(discriminator="type"),
]
_LINES: Final[TypeAdapter[ReplayLine]] = TypeAdapter(ReplayLine)


def write_replay_line(line: ReplayLine) -> str:
    """Return a line as JSON, with its line end; equal lines are equal bytes."""
    return line.model_dump_json() + "\n"


def read_replay_line(number: int, line: bytes) -> ReplayLine:
    """Read what `write_replay_line` wrote.

    Args:
        number: of the line, from 1.

    Raises:
        AntiphonError: invalid_params, naming the line.
    """
    try:
        return _LINES.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        what = f"Line {number} is none of a replay that antiphon export --format replay writes"
        raise invalid_params(f"{what}: {where}: {first['msg']}.") from error
