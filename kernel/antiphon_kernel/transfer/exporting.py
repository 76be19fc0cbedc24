"""A context as lines of JSON, to be imported again, as Markdown, to be read, or as messages.

Of the lines of JSON the first is about the context, then comes one for each block in document
order, and before the first block that names a principal one about that principal, before the first
block with which a file is attached one with its bytes. The last line says how many blocks there
are: an export without it has been broken off. What is absent in a line has its default.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from antiphon_kernel.contexts import Context
from antiphon_kernel.conversation import (
    CONVERSATION,
    IMPORTED,
    PathMessage,
    PlacedInstructions,
    read_instructions,
)
from antiphon_kernel.document.content import read_value
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.history.block_history import BlockHistory
from antiphon_kernel.document.rendering import render
from antiphon_kernel.document.schema import (
    TEXT,
    Schema,
    each_part,
    encode_schema,
    is_text,
    path_of,
)
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import Limits
from antiphon_kernel.messages import (
    DocumentBlock,
    ImageBlock,
    ImportedMessage,
    MessageShape,
    split_runs,
    without,
    write_run,
    write_system,
)
from antiphon_kernel.tasks import TimeSlice, portions
from antiphon_kernel.types.block_metadata import is_cut_out
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.errors import AntiphonError, invalid_params
from antiphon_kernel.types.frozen_json import JsonObject, thaw
from antiphon_kernel.types.ids import BlockId
from antiphon_kernel.types.json_validation import parse_json, unique_names
from antiphon_kernel.types.quoting import truncate
from antiphon_kernel.types.records import BlockHeader
from antiphon_kernel.validation import without_damage

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
_SAID: Final = {
    "json_invalid": "it has half a surrogate pair, or is nested too deep",
    "union_tag_not_found": "it has no `type`, which is context, principal, blob, block or end",
}
"""Words for what the validator says in its own, by the type of its complaint."""
_LINES: Final[TypeAdapter[Line]] = TypeAdapter(Annotated[Line, Field(discriminator="type")])

_DEFAULTS: Final = {
    name: BlockHeader._field_defaults.get(name) for name in BlockHeader._fields if name != "id"
}


def as_line(line: Line) -> str:
    """Return a line of an export as one JSON document, with its line end."""
    return json.dumps(line.model_dump(by_alias=True, exclude_none=True), ensure_ascii=False) + "\n"


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
        parse_json(line.decode(), pairs=unique_names)  # the validator takes the last one
        read: Line = _LINES.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = truncate(".".join(map(str, first["loc"])))
        what = _SAID.get(first["type"], first["msg"])
        raise refusal(number, f"{where}: {what}" if where else what) from error
    except ValueError as error:
        raise refusal(number, str(error).replace("line 1 column", "column")) from error
    if isinstance(read, ContextLine) and read.format != FORMAT:
        raise refusal(number, f"it has the format {read.format}, this antiphon reads {FORMAT}")
    return read


def refusal(line: int, what: str) -> AntiphonError:
    """Return the error of a line that cannot be imported."""
    return invalid_params(
        f"Line {line} is not as `antiphon export --format jsonl` writes it: {what}."
        " Nothing was imported.",
        line=line,
    )


_json = partial(json.dumps, ensure_ascii=False)

_PIECE: Final = 50_000
"""Code points that are handed on at a time."""


async def export_lines(kernel: Kernel, context: Context) -> AsyncGenerator[str, None]:
    """Yield everything of a context but what is undone and who did what when, as lines of JSON.

    Each piece is one or more whole lines and is on disk; each block is as of one moment. Nothing is
    held while the caller has a piece.

    Damaged header values and attached files whose bytes are lost are left out, so that what is
    exported can be imported.
    """
    named: set[str] = set()
    blocks = tuple(context.document.block_ids())
    row, origin = context.row, context.row.origin
    source = kernel.contexts.of_number(origin.source) if origin is not None else None
    about = ContextLine(
        context_id=context.id,
        label=context.label,
        version=context.seq,
        creator=kernel.members.find(row.creator).username if row.creator is not None else None,
        source_context=source.id if source is not None else None,
        source_label=source.label if source is not None else None,
        source_version=origin.seq if origin is not None else None,
    )
    blobs = {context.document.header(block).blob for block in blocks} - {None}
    damaged = {one for one in blobs if one and await kernel.journal.blob(one) is None}
    written: set[str] = set()
    wanted: list[str] = []

    def read(history: BlockHistory) -> str:
        block = _block(context, history, kernel.limits, damaged)
        blob = block.header.get("blob")
        if blob is not None and blob not in written:
            written.add(blob)
            wanted.append(blob)
        new = _named(block) - named
        named.update(new)
        known = (kernel.members.find(one) for one in sorted(new))
        lines = [PrincipalLine(id=one.id, username=one.username, kind=one.kind) for one in known]
        return "".join([*map(as_line, lines), as_line(block)])

    await context.wait_persisted()
    yield as_line(about)
    async for lines in context.histories.read_each(blocks, read):
        await context.wait_persisted()
        for blob in wanted:
            data = await kernel.journal.blob(blob)
            if data is not None:
                yield as_line(BlobLine(sha256=blob, data=b64encode(data).decode()))
        wanted.clear()
        for piece in portions(lines, len, size=_PIECE):
            yield "".join(piece)
    yield as_line(EndLine(blocks=len(blocks)))


def _block(
    context: Context, history: BlockHistory, limits: Limits, damaged: Collection[str]
) -> BlockLine:
    document, block = context.document, history.block
    header = without_damage(document.header(block), limits)
    if header.blob in damaged:
        header = header._replace(media_type=None, blob=None, blob_bytes=None)
    schema = document.schema(block)
    structured: dict[str, Any] = {}
    if schema != TEXT:
        structured["schema"] = json.loads(encode_schema(schema))
        structured["content"] = read_value(document, block)
    return BlockLine(
        id=block,
        version=context.blocks.version(block),
        header=header_fields(header),
        text=history.text() if schema == TEXT else "",
        authors=[*_authors(history, schema)],
        **structured,
    )


def _named(line: BlockLine) -> set[str]:
    named: set[str] = {line.header["author"], *(run.principal for run in line.authors)}
    for block in (line.id, line.header.get("parent")):
        if block is not None:
            with suppress(ValueError):
                named.add(BlockId.parse(block).principal)
    return named


def _authors(history: BlockHistory, schema: Schema) -> Iterator[RunLine]:
    """The authors of each text in a content, text by text."""
    for names, part in each_part(schema):
        if not is_text(part):
            continue
        section, at = path_of(names), 0
        for run in history.blame(section):
            yield RunLine(
                start=at,
                end=at + run.length,
                principal=run.stamp.principal,
                version=run.stamp.version,
                time=iso_time(run.stamp.time),
                section=section,
            )
            at += run.length


async def export_markdown(kernel: Kernel, context: Context) -> AsyncGenerator[str, None]:
    """Yield what a person reads: a heading for each block, its text, code and output fenced.

    Blocks that are cut out are left out.

    Each block is as of one moment, and on disk.
    """
    document, slices = context.document, TimeSlice()
    yield f"# {context.label}\n"
    for block in tuple(document.block_ids()):
        header = document.header(block)
        if not is_cut_out(header):
            is_text = document.schema(block) == TEXT
            text = document.peek_text(block) if is_text else render(document, block)
            heading = _heading(header, kernel.members.find(header.author).username)
            await context.wait_persisted()
            yield f"\n{heading}\n\n{_body(header, text)}"
        await slices.pause()


def _heading(header: BlockHeader, username: str) -> str:
    words = [username]
    if header.kind != BlockKind.TEXT:
        words.append(str(header.kind).replace("_", " "))
    words.append(header.created)
    if header.status != "done":
        words.append(str(header.status))
    return "## " + " · ".join(words)


def _body(header: BlockHeader, text: str) -> str:
    if header.kind in (BlockKind.TEXT, BlockKind.THINKING):
        return text if text.endswith("\n") else text + "\n"
    ticks = max((len(one) for one in re.findall("`+", text)), default=0)
    fence = "`" * max(3, ticks + 1)
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{fence}{header.language or ''}\n{text}{end}{fence}\n"


async def export_messages(
    kernel: Kernel, context: Context, shape: MessageShape
) -> AsyncGenerator[str, None]:
    """Yield the messages of a context as one JSON object, a line for each.

    All are as of one moment, and on disk. Blocks that models do not read are left out; so are
    summaries, since what they stand for is there.
    """
    branch = await kernel.trees.branch(context)
    document, slices = context.document, TimeSlice()
    found: list[PathMessage | PlacedInstructions] = [*branch.messages]
    found = sorted([*found, *read_instructions(document)], key=lambda one: one.start)
    said = [ImportedMessage(one.message, None, _kept(document, one.id, IMPORTED)) for one in found]
    about = next(filter(None, (_kept(document, one.id, CONVERSATION) for one in found)), None)
    await context.wait_persisted()
    fields: dict[str, Any] = without(thaw(about or JsonObject()), "system", "messages")
    if said:
        system = write_system(said[0], shape, await _read_files(kernel, said[:1]))
        if system is not None:
            fields["system"] = system
            del said[0]
    lines = [f"{_json(name)}: {_json(value)},\n" for name, value in fields.items()]
    yield "".join(["{", *lines, '"messages": ['])
    before = "\n"
    for run in split_runs(said, shape):
        files = await _read_files(kernel, run)
        for value in write_run(run, shape, files):
            yield before + _json(value)
            before = ",\n"
        await slices.pause()
    yield "\n]}\n"


def _kept(document: Document, block: str, key: str) -> JsonObject:
    """The fields of another tool that a block keeps."""
    kept = document.header(block).metadata.get(key)
    try:
        return JsonObject(kept if isinstance(kept, Mapping) else {})
    except (ValueError, RecursionError):
        return JsonObject()  # people write metadata as they like


async def _read_files(kernel: Kernel, run: Iterable[ImportedMessage]) -> dict[str, bytes]:
    """The bytes of the images and documents in messages, by hash."""
    files: dict[str, bytes] = {}
    for one in run:
        for block in one.message.content:
            if isinstance(block, ImageBlock | DocumentBlock):
                data = await kernel.journal.blob(block.hash)
                files |= {block.hash: data} if data is not None else {}
    return files
