"""An exported context becomes a new one: same blocks, same order, same authors."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Final

from antiphon_kernel.contexts.opening import InitialContent
from antiphon_kernel.document.changes import Transaction
from antiphon_kernel.document.content_writes import check_defaults, plan_set
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.header import ENUMS, FIELDS, known_value
from antiphon_kernel.document.schema import Rule, decode_schema, each_part, is_text, path_of
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.layout import copied_ids, moved_metadata, rename_derived
from antiphon_kernel.storage import (
    Blob,
    BlockRow,
    Commit,
    ContextRow,
    InheritedText,
)
from antiphon_kernel.tasks import TimeSlice
from antiphon_kernel.text.splice_diff import apply_script
from antiphon_kernel.transfer.exporting import (
    BlobLine,
    BlockLine,
    ContextLine,
    EndLine,
    ErrorLine,
    Line,
    PrincipalLine,
    read_line,
    refusal,
)
from antiphon_kernel.types.block_metadata import SUMMARY_TYPE
from antiphon_kernel.types.clock import moment_of, moment_or_start
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.errors import AntiphonError, ErrorCode, invalid_params, permission_denied
from antiphon_kernel.types.ids import SYSTEM_NAME, BlockId, PrincipalId
from antiphon_kernel.types.media_types import is_of_type
from antiphon_kernel.types.quoting import quote, truncate
from antiphon_kernel.types.records import (
    COLOUR_SLOTS,
    Actor,
    BlockHeader,
    Member,
    Principal,
    Run,
    Stamp,
)
from antiphon_kernel.types.roles import AccessRole
from antiphon_kernel.validation import check_limit, check_value, without_question
from antiphon_kernel.yjs.id_set import decode_state_vector

_BLOCKS_HELD: Final = 200
_CODE_POINTS_HELD: Final = 1_000_000


async def import_lines(
    kernel: Kernel,
    actor: Actor,
    pieces: AsyncIterator[bytes],
    label: str | None,
    check: Callable[[], None],
) -> tuple[ContextRow, int, int]:
    """Make a new context of an export. It is there whole or not at all.

    Principals are those of this kernel with the same usernames; others become known as authors, who
    are no members until somebody invites them. Blocks
    keep their numbers, their order and their fields. What is held in memory is in proportion to the
    content.

    Args:
        pieces: the export, cut anywhere.
        label: the new context's; the exported one's if None.
        check: raises if the caller may not import any more; called before anything is stored.

    Returns the context, how many blocks it has, and the version that it begins with.

    Raises:
        AntiphonError: invalid_params or too_large if something in it cannot be, naming the line;
            permission_denied if it credits text to somebody whom the importer may not name;
            storage_failed.
    """
    lines = _numbered(pieces, kernel.limits.export_line_bytes)
    first = await anext(lines, None)
    if first is None or not isinstance(about := read_line(*first), ContextLine):
        raise refusal(first[0] if first is not None else 1, "expected the line of the context")
    blocks, version = 0, 1

    async def beginning(row: ContextRow) -> InitialContent:
        nonlocal blocks, version
        reader = _ImportReader(kernel, actor, row)
        slices = TimeSlice()
        with closing(reader):
            async for number, line in lines:
                with _naming(number):
                    await reader.take(number, read_line(number, line))
                await slices.pause()
            commits = await reader.finish(slices)
        blocks, version = reader.blocks, commits[-1].seq
        check()
        return InitialContent(commits)

    wanted = label if label is not None else about.label
    row = await kernel.contexts.create(wanted, kernel.system, beginning, asker=actor)
    return row, blocks, version


class _ImportReader:
    """Makes transactions of the lines of one export, one for each block.

    Raises AntiphonError invalid_params for a line that cannot be taken.
    """

    def __init__(self, kernel: Kernel, actor: Actor, row: ContextRow) -> None:
        self._kernel = kernel
        self._actor = actor
        self._row = row
        self._time = kernel.clock.now_ms()
        self._commits: list[Commit] = []
        self._principals: dict[str, Principal] = {}
        self._members: set[str] = set()
        self._parents: dict[str, str | None] = {}
        self._names: dict[str, str] = {}
        """Ids derived from those of blocks: those here, by those in the export."""
        self._lines: dict[str, int] = {}
        """Number of the line of each block."""
        self._blobs: dict[str, Blob] = {}
        self._ended = False
        self._document = Document(kernel.ids.client_id())
        self._held = 0
        """Bytes in the document: only some blocks at a time are in it."""

    @property
    def blocks(self) -> int:
        """Number of blocks so far."""
        return len(self._parents)

    async def take(self, number: int, line: Line) -> None:
        """Take the next line."""
        if self._ended:
            raise refusal(number, "it comes behind the last line of the export")
        match line:
            case PrincipalLine():
                kind = _check_author(self._kernel, self._actor.principal, line)
                members = self._kernel.members
                known = await members.principal(line.username, kind, AccessRole.AUTHOR)
                self._principals[line.id] = known
                self._introduce(known)
            case BlobLine():
                self._take_blob(number, line)
            case BlockLine():
                self._add(number, line)
            case EndLine():
                if line.blocks != self.blocks:
                    what = f"the export had {line.blocks} blocks, here are {self.blocks}"
                    raise refusal(number, what)
                self._ended = True
            case ErrorLine():
                why = truncate(str(line.error.get("message", "")))
                raise refusal(number, f"the export was broken off here: {why}")
            case ContextLine():
                raise refusal(number, "there is a line of the context already")

    async def finish(self, slices: TimeSlice) -> Sequence[Commit]:
        """Return the transactions, from seq 2 on."""
        if not self._ended:
            raise invalid_params(
                "The last line is missing, which says how many blocks there are: the export was"
                " broken off. Nothing was imported; export again.",
            )
        await self._check_parents(slices)
        if not self._members:
            # An empty context names nobody; then whoever imports it is its first member.
            self._introduce(self._actor.principal)
        return self._commits

    async def _check_parents(self, slices: TimeSlice) -> None:
        """Refuse parents that are not there or run in a circle, and chains that no tool makes.

        Blocks that should answer something and do not are as they were where they come from.
        """
        parents, limit = self._parents, self._kernel.limits.parent_depth
        above: dict[str | None, int] = {None: -1}
        for block in parents:
            await slices.pause()
            chain: list[str] = []
            at: str | None = block
            while at not in above:
                if at not in parents:
                    with _naming(self._lines[chain[-1]]):
                        raise _refusal(chain[-1], f"its parent {quote(at)} is not in the export")
                above[at] = limit  # whoever comes by again has run in a circle
                chain.append(at)
                at = parents[at]
            for count, one in enumerate(reversed(chain), above[at] + 1):
                above[one] = count
            if above[block] >= limit:
                what = f"run in a circle, or are more than {limit - 1}"
                with _naming(self._lines[block]):
                    raise _refusal(block, f"the parents above it {what}")

    def close(self) -> None:
        """Let go of the document."""
        self._document.close()

    def _introduce(self, principal: Principal) -> None:
        if principal.id in self._members:
            return
        name, kind, slot = principal.username, principal.kind, len(self._members) % COLOUR_SLOTS
        self._members.add(principal.id)
        with self._document.transaction("import") as transaction:
            self._document.set_member(Member(principal.id, name, kind, slot))
        self._commit(transaction, (), ())

    def _take_blob(self, number: int, line: BlobLine) -> None:
        try:
            blob = Blob.of(b64decode(line.data, validate=True))
        except ValueError as error:
            raise refusal(number, f"data is not base64 ({error})") from error
        if blob.hash != line.sha256:
            raise refusal(number, f"its bytes have the SHA-256 {blob.hash}, not what it says")
        what = f"The attached file has {len(blob.data)} bytes"
        check_limit(len(blob.data), self._kernel.limits, "attachment_bytes", what, "leave it out")
        self._blobs[blob.hash] = blob

    def _blob_of(self, block: BlockLine) -> tuple[Blob, ...]:
        """The attached file of a block, which is what its header says."""
        header = block.header
        stated = [header.get(name) for name in ("media_type", "blob", "blob_bytes")]
        if stated == [None, None, None]:
            return ()
        media_type, hash_, size = stated
        blob = self._blobs.get(str(hash_))
        if blob is None:
            raise _refusal(block.id, "no line before it has the bytes of its file")
        if size != len(blob.data) or not is_of_type(blob.data, str(media_type)):
            raise _refusal(block.id, "its file is not of the size and the type that it says")
        return (blob,)

    def _add(self, line_number: int, block: BlockLine) -> None:
        if block.id in self._parents:
            raise _refusal(block.id, "there is already a block of this id")
        for name, value in block.header.items():
            if name not in FIELDS:
                raise _refusal(block.id, f"there is no header field {quote(name)}")
            try:
                check_value(name, value, self._kernel.limits)
            except AntiphonError as error:
                refused = _refusal(block.id, error.message.removesuffix("."))
                refused.code, refused.details = error.code, {**error.details, **refused.details}
                raise refused from error
        blobs = self._blob_of(block)
        self._make_room(len(block.text))
        document, moved = self._document, self._moved(block.id)
        try:
            header = self._header(block)
            block, header = self._renamed(block, header)
            with document.transaction("import") as transaction:
                _create(document, block, header)
        except (ValueError, TypeError) as error:
            raise _refusal(block.id, str(error)) from error
        parent = block.header.get("parent")
        self._parents[block.id] = str(parent) if parent is not None else None
        self._lines[block.id] = line_number
        inherited = tuple(self._inherited(block, moved))
        self._commit(transaction, (BlockRow(self.blocks, moved, 1),), inherited, blobs)

    def _moved(self, block: str) -> str:
        """Return the id that a block has here."""
        try:
            found = BlockId.parse(block)
        except ValueError as error:
            raise _refusal(block, str(error)) from error
        principal = PrincipalId(self._principal(found.principal))
        return str(BlockId(self._row.id, principal, found.seq))

    def _header(self, block: BlockLine) -> BlockHeader:
        fields = dict(block.header)
        for name in ENUMS:
            fields[name] = known_value(name, fields.get(name))
        fields["author"] = self._principal(fields.get("author"))
        if "parent" in fields:
            parent = fields["parent"]
            if not isinstance(parent, str):
                raise _refusal(block.id, f"its parent {quote(parent)} is not in the export")
            fields["parent"] = self._moved(parent)
        return without_question(BlockHeader(id=self._moved(block.id), **fields))

    def _inherited(self, block: BlockLine, moved: str) -> Iterator[InheritedText]:
        for names, part in each_part(self._document.schema(moved)):
            if is_text(part):
                section = path_of(names)
                runs = self._runs(block, section, len(self._document.text(moved, section)))
                yield InheritedText(self.blocks, section, tuple(runs))

    def _runs(self, block: BlockLine, section: str | None, length: int) -> list[Run]:
        end, runs = 0, list[Run]()
        for run in block.authors:
            if run.section != section:
                continue
            if run.start != end or run.end <= run.start:
                raise _refusal(block.id, f"its authors do not follow one another at {run.start}")
            try:
                time = moment_of(run.time)
            except ValueError as error:
                raise _refusal(block.id, str(error)) from error
            end, principal = run.end, self._principal(run.principal)
            runs.append(Run(end - run.start, Stamp(principal, run.version, time)))
        if end != length:
            raise _refusal(block.id, f"its authors end at {end}, its text at {length}")
        return runs

    def _principal(self, stated: object) -> str:
        found = self._principals.get(stated) if isinstance(stated, str) else None
        if found is None:
            raise invalid_params(
                f"The export names the principal {quote(stated)} without a line about it."
                " Nothing was imported.",
            )
        return found.id

    def _renamed(self, block: BlockLine, header: BlockHeader) -> tuple[BlockLine, BlockHeader]:
        """Return a block with what it names, if it is a summary, by the paths it has here."""
        self._names |= copied_ids(block.id, header.id, moment_or_start(header.created))
        header = header._replace(metadata=moved_metadata(header.metadata, self._names))
        if header.metadata.get("type") == SUMMARY_TYPE:
            text = apply_script(block.text, rename_derived(block.text, self._names))
            block = block.model_copy(update={"text": text})
        return block, header

    def _make_room(self, size: int) -> None:
        """Go on in an empty document: what has been written is in the transactions."""
        self._held += size
        document = self._document
        if len(document) < _BLOCKS_HELD and self._held < _CODE_POINTS_HELD:
            return
        client = document.client_id
        clock = decode_state_vector(document.state_vector()).get(client, 0)
        document.close()
        self._document, self._held = Document.continued(client, clock), size

    def _commit(
        self,
        transaction: Transaction,
        blocks: tuple[BlockRow, ...],
        inherited: tuple[InheritedText, ...],
        blobs: tuple[Blob, ...] = (),
    ) -> None:
        update, seq = transaction.update, len(self._commits) + 2
        assert update is not None, "what is added is new"
        about = self._row, seq, self._time, self._actor, "import", blocks, update
        self._commits.append(Commit(*about, inherited=inherited, blobs=blobs))


def _check_author(kernel: Kernel, importer: Principal, line: PrincipalLine) -> PrincipalKind:
    """Refuse an author whom the export would credit with text that they may not have written.

    Whose kernel it is brings back what it exported; everybody else names only themselves and
    people and models that this kernel does not know.
    """
    name = line.username
    try:
        kind = PrincipalKind(line.kind)
    except ValueError as error:
        raise invalid_params(
            f"{quote(line.kind)} is no kind of principal: use {', '.join(PrincipalKind)}.",
            allowed=list(PrincipalKind),
        ) from error
    known = next((one for one in kernel.members if one.username == name), None)
    if (kind is PrincipalKind.SYSTEM) != (name == SYSTEM_NAME):
        raise _wrong_author(name, f"the name {SYSTEM_NAME} is the kernel's own, and only its")
    if known is not None and known.kind is not kind:
        raise _wrong_author(name, f"here it is a {known.kind}, in the export a {kind}")
    is_kernels = kind in (PrincipalKind.SYSTEM, PrincipalKind.SOURCE)
    if is_kernels or (known is not None and known.id != importer.id):
        if importer.id != kernel.owner.id:
            raise permission_denied(
                f"The export credits text to {name} of this kernel, and only"
                f" {kernel.owner.username}, whose kernel it is, may import that: ask them. Nothing"
                " was imported.",
                author=name,
            )
    if kind is PrincipalKind.SOURCE and known is None:
        raise _wrong_author(name, "here is no source of this name, and an import makes none")
    return kind


def _wrong_author(name: str, why: str) -> AntiphonError:
    return invalid_params(
        f"The export's author {quote(name)} cannot be taken over: {why}. Rename it in the export."
        " Nothing was imported.",
        username=truncate(name),
    )


async def _numbered(pieces: AsyncIterator[bytes], limit: int) -> AsyncIterator[tuple[int, bytes]]:
    """Cut a text into lines, with their numbers; lines without text are left out."""
    number, begun = 1, bytearray()
    async for piece in pieces:
        *whole, rest = piece.split(b"\n")
        for end in whole:
            begun += end
            if begun.strip():
                yield number, bytes(begun)
            begun.clear()
            number += 1
        begun += rest
        if len(begun) > limit:
            raise AntiphonError(
                ErrorCode.TOO_LARGE,
                f"Line {number} has more than {limit} bytes. Nothing was imported.",
                line=number,
                limit=limit,
                limit_name="export_line_bytes",
            )
    if begun.strip():
        yield number, bytes(begun)


@contextmanager
def _naming(line: int) -> Iterator[None]:
    """Add the number of a line to what is wrong with it."""
    try:
        yield
    except AntiphonError as error:
        if "line" in error.details:
            raise
        error.message = f"Line {line}: {error.message}"
        error.details = {**error.details, "line": line}
        raise


def _create(document: Document, block: BlockLine, header: BlockHeader) -> None:
    if block.block_schema is None:
        document.create_block(header, block.text)
        return
    schema = decode_schema(json.dumps(block.block_schema))
    if schema is None:
        raise ValueError("its schema is none that this antiphon knows")
    check_defaults(schema)
    document.create_block(header, schema=schema)
    # What merging had broken where it comes from stays as it is.
    broken = (Rule.MAX_ITEMS, Rule.REQUIRED)
    for write in plan_set(document, header.id, None, block.content, allow=broken):
        write.apply()


def _refusal(block: str, what: str) -> AntiphonError:
    return invalid_params(
        f"Block {truncate(block)} cannot be imported: {what}. Nothing was imported.",
        block=truncate(block),
    )
