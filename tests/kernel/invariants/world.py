"""A real kernel with people, a model and a script in it, and an oracle that follows its journal.

Whatever is done here is checked at once: what was acknowledged is on disk, the disk says what the
oracle says, and every document says what the disk says.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from antiphon_kernel.contexts import Broadcast, Context, UseScope
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import Limits
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.constants import INTERRUPTED
from antiphon_kernel.types.enums import PrincipalKind, Role, Status
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import IdSource
from antiphon_kernel.types.records import Actor, BlockHeader
from tests.clocks import ManualClock
from tests.kernel.invariants.alphabet import Alphabet, author_of
from tests.kernel.invariants.client import Client, deliver
from tests.kernel.invariants.oracle import Op, Oracle, Violation

FILE = "journal.db"


class Disk:
    """A reader of the journal of one data folder."""

    def __init__(self, data: Path) -> None:
        self._reader = sqlite3.connect(data / FILE, isolation_level=None)

    def close(self) -> None:
        self._reader.close()

    def last_seq(self, context: str) -> int:
        sql = (
            "SELECT coalesce(max(o.seq), 0) FROM ops o JOIN contexts c ON c.number = o.context"
            " WHERE c.id = ?"
        )
        return int(self._reader.execute(sql, (context,)).fetchone()[0])

    def ops(self, context: str, after: int) -> list[Op]:
        """Every transaction of a context with a higher `seq`, in order."""
        sql = "SELECT b.number, b.id FROM blocks b JOIN contexts c ON c.number = b.context"
        names = dict(self._reader.execute(f"{sql} WHERE c.id = ?", (context,)).fetchall())
        sql = (
            "SELECT o.seq, o.time, p.id, s.id, o.operation, o.unit, o.touched, o.changes FROM ops o"
            " JOIN principals p ON p.number = o.principal"
            " JOIN sessions s ON s.number = o.session"
            " JOIN contexts c ON c.number = o.context"
            " WHERE c.id = ? AND o.seq > ? ORDER BY o.seq"
        )
        found = []
        for row in self._reader.execute(sql, (context, after)):
            seq, time, principal, session, operation, unit, touched, changes = row
            pairs = (pair.split(":") for pair in touched.split())
            versions = {names[int(number)]: int(version) for number, version in pairs}
            update = bytes(changes)
            found.append(Op(seq, time, principal, session, operation, unit, versions, update))
        return found

    def everything(self) -> list[tuple[object, ...]]:
        """All that a call could have changed; operations by their number, since none changes."""
        rows = self._reader.execute("SELECT context, max(seq), count(*) FROM ops GROUP BY context")
        found = rows.fetchall()
        for table in ("blocks", "undo", "clients", "contexts", "principals"):
            found += self._reader.execute(f"SELECT * FROM {table}").fetchall()
        return found


def crash_image(data: Path, image: Path) -> None:
    """Write what would be left if the machine stopped now."""
    image.mkdir()
    for name in (FILE, f"{FILE}-wal"):
        if (data / name).exists():
            shutil.copyfile(data / name, image / name)


PEOPLE = ("amy", "bo")
MODEL, SCRIPT = "aria", "robo"
NAMES = (*PEOPLE, MODEL, SCRIPT)
CLIENTS = ("amy", "bo", "amy.second")
"""Replicas, by username; one of the people has two."""
_KINDS = {MODEL: PrincipalKind.MODEL, SCRIPT: PrincipalKind.SHELL}

LIMITS = Limits(
    append_silence_seconds=1e6, snapshot_transactions=15, snapshot_transactions_on_close=5
)
"""No timer goes off in the middle of a case, for a seed must always do the same; and contexts are
opened from snapshots as well as from the beginning."""


class SeededIds(IdSource):
    """Ids from a seed, so that a failing case can be run again: UUIDs in the order of their making,
    client ids in none."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(f"ids {seed}")
        self._made = 0

    def uuid7(self) -> str:
        self._made += 1
        tail = self._rng.getrandbits(62)
        return f"{self._made:012x}7{self._rng.getrandbits(12):03x}{0x8000000000000000 | tail:016x}"

    def client_id(self) -> int:
        return self._rng.randint(1, 2**32 - 1)


class World:
    """One context of one kernel, everybody in it, and what must be true of it."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.rng = rng
        self.clock = ManualClock()
        self.ids = SeededIds(rng.getrandbits(32))
        self.oracle = Oracle(self._is_draft)
        self.alphabets = {name: Alphabet(at) for at, name in enumerate(NAMES)}
        self.actors: dict[str, Actor] = {}
        self.clients: dict[str, Client] = {}
        self.owners: dict[str, str] = {}
        """Block to the session that created it or last appended to it; if that is gone, to the one
        that made it run."""
        self.streamed: dict[tuple[str, str], list[str]] = {}
        """Principal and block to what has been appended there, chunk by chunk."""
        self.kernel: Kernel
        self.context: Context
        self.disk: Disk
        self._folder = folder
        self._lives = 0
        self._data = folder / "data-0"
        self._turn: tuple[str, str | None] | None = None
        self._early: list[int] = []
        self._unsubscribe: Callable[[], None] = _nothing

    # Lives of the kernel

    def _is_draft(self, block: str) -> bool:
        return self.context.document.is_draft(block)

    async def open(self) -> None:
        self.kernel = await Kernel.open(
            self._data,
            self._folder,
            registry=Registry(KERNEL_TOOLS),
            owner="amy",
            clock=self.clock,
            ids=self.ids,
            limits=LIMITS,
        )
        await self._open_context()
        self.disk = Disk(self._data)
        for name in NAMES:
            principal = await self.kernel.principal(name, _KINDS.get(name, PrincipalKind.HUMAN))
            self.actors[name] = self.kernel.open_session(principal, "test")
        await self.settle()
        for name, client in self.clients.items():
            client.actor = self.actors[name.split(".")[0]]

    async def _open_context(self) -> None:
        with UseScope():  # it may be closed before the end of the test
            self.context = await self.kernel.context()
        self._unsubscribe = self.context.committed.listen(self._heard)

    async def add_client(self, name: str, *, keeps_deleted: bool) -> None:
        """`name` is a username, with anything after a dot for a second replica of it."""
        actor = self.actors[name.split(".")[0]]
        client = Client(actor, self.ids.client_id(), keeps_deleted=keeps_deleted)
        self.clients[name] = client
        await client.connect(self.context)

    async def restart(self) -> None:
        """Close and open; every draft must have kept its status."""
        for client in self.clients.values():
            client.disconnect()
        self._unsubscribe()
        self.context.appends.flush_all()
        before = self.headers()
        await self.kernel.close()
        self.disk.close()
        await self.open()
        self._keep_streams_of_the_disk()
        self._check_after_opening(before)

    async def crash(self) -> None:
        """Go on with what is on disk while the kernel runs, as after a power cut."""
        for client in self.clients.values():
            client.disconnect()
        before = self.headers()
        image = self._folder / f"data-{self._lives + 1}"
        crash_image(self._data, image)
        old, gone = self.kernel, self._data
        self._unsubscribe()
        self.disk.close()
        self._lives += 1
        self._data = image
        await old.close()
        shutil.rmtree(gone)
        await self.open()
        self._keep_streams_of_the_disk()
        self._check_after_opening(before)

    async def be_idle(self) -> None:
        """Let nobody use the context for long: it is closed if nobody writes, and as it was."""
        for client in self.clients.values():
            client.disconnect()
        await self.settle()
        before, is_needed = self.headers(), self.buffered() or self._is_written()
        self.clock.ms += round(LIMITS.idle_context_seconds * 1000)
        closed = self.context
        await self.kernel.open_contexts.close_idle()
        self._unsubscribe()
        await self._open_context()
        if (self.context is closed) != is_needed:
            raise Violation(f"closed: {self.context is not closed}, but needed: {is_needed}")
        await self.settle()
        if self.headers() != before:
            raise Violation("a context that was closed has other headers")
        for block in self.oracle.blocks():
            self.compare(self.context.document.text(block), block, "the kernel, opened again,")

    def _is_written(self) -> bool:
        """Whether a model or a script writes a block."""
        model = self.actors[MODEL].principal.id
        return any(
            one.status == Status.RUNNING or (one.status == Status.PENDING and one.author == model)
            for one in self.headers().values()
            if one.is_written_by_program
        )

    async def close(self) -> None:
        for client in self.clients.values():
            client.close()
        self._unsubscribe()
        await self.kernel.close()
        self.disk.close()

    def _keep_streams_of_the_disk(self) -> None:
        """Only what was flushed counts; whatever was not is gone with the kernel's life."""
        self.streamed = {key: ["".join(chunks)] for key, chunks in self.flushed().items()}

    def _check_after_opening(self, before: Mapping[str, BlockHeader]) -> None:
        after = self.headers()
        if list(after) != list(before):
            raise Violation("a restart has changed which blocks there are, or their order")
        for block, header in after.items():
            was = before[block]
            if header.role == Role.USER and header.status != was.status:
                raise Violation(f"a draft was {was.status} and is {header.status} after a restart")
            if header.role in (Role.MODEL, Role.TOOL) and header.status == Status.RUNNING:
                raise Violation(f"block {block} runs without anybody who writes it")
            if header.status != was.status and header.stop_reason != INTERRUPTED:
                raise Violation(f"block {block} has become {header.status} without a reason")

    # Acting

    async def call(self, name: str, tool: str, **params: Any) -> dict[str, Any]:
        """Call a tool; what it answers is on disk, and if it fails nothing has changed."""
        await self.settle()
        buffered = self.buffered()
        before, rows = self.context.document.state_vector(), self.disk.everything()
        try:
            answer = await self.kernel.call(self.actors[name], tool, params)
        except AntiphonError as error:
            await self.context.wait_persisted()
            same = self.context.document.state_vector() == before
            if not buffered and not (same and self.disk.everything() == rows):
                raise Violation(f"{tool} failed ({error.code}) and left something") from error
            await self.settle()
            raise
        seq = answer.get("context_version", 0)
        if seq > self.disk.last_seq(self.context.id) and not params.get("stream"):
            raise Violation(f"{tool} was acknowledged as {seq} before it was on disk")
        self._turn = self._turn_of(name, tool, params)
        try:
            await self.settle()
        finally:
            self._turn = None
        if tool == "block.append":
            self.owners[params["block_id"]] = self.actors[name].session
        return answer

    def buffered(self) -> bool:
        """Whether a streamed append waits for its flush."""
        appends = self.context.appends
        return any(appends.unflushed(block) for block in self.context.document.block_ids())

    def _turn_of(
        self, name: str, tool: str, params: Mapping[str, Any]
    ) -> tuple[str, str | None] | None:
        if tool not in ("block.undo", "block.redo"):
            return None
        whose = params.get("principal", name)
        return self.actors[whose].principal.id, params.get("block_id")

    def _heard(self, broadcast: Broadcast) -> None:
        if broadcast.seq > self.disk.last_seq(self.context.id):
            self._early.append(broadcast.seq)

    # Checking

    def sessions(self) -> set[str]:
        return {one.session for one in self.actors.values()}

    def check_owners(self) -> None:
        """No block of a model or tool is left running by a session that is gone."""
        for block, header in self.headers().items():
            if header.role in (Role.MODEL, Role.TOOL) and header.status == Status.RUNNING:
                if self.owners.get(block) not in self.sessions():
                    raise Violation(f"block {block} runs without anybody who writes it")

    async def settle(self) -> None:
        """Wait for the disk, let the oracle follow it, and compare every text."""
        await self.context.wait_persisted()
        if self._early:
            raise Violation(f"seq {self._early[0]} was broadcast before it was on disk")
        ops = self.disk.ops(self.context.id, self.oracle.seq)
        for op in ops:
            self.oracle.follow(op, self._turn)
            for block in op.versions:
                first = next(iter(self.oracle.chars.get(block, ())), None)
                makes_it_run = first is not None and first.op is op
                alone = self.owners.get(block) not in self.sessions()
                if op.operation == "create" or (makes_it_run and alone):
                    self.owners[block] = op.session
        if self.oracle.seq != self.context.seq:
            raise Violation(f"seq is {self.context.seq}, on disk it is {self.oracle.seq}")
        touched = {block for op in ops for block in op.versions}
        for block in touched & set(self.oracle.blocks()):
            self.compare(self.context.document.text(block), block, "the kernel")
        for op in ops:
            for block, version in op.versions.items():
                if version > self.context.blocks.version(block):
                    raise Violation(f"version {version} on disk is ahead of the block's")

    def compare(self, found: str, block: str, who: str) -> None:
        due = self.oracle.text(block)
        if found != due:
            raise Violation(f"{who} has {found!r} in {block}, on disk it is {due!r}")

    def headers(self) -> dict[str, BlockHeader]:
        document = self.context.document
        return {block: document.header(block) for block in document.block_ids()}

    def flushed(self) -> dict[tuple[str, str], str]:
        """Return what appends have put on disk, by principal and block, of the author's letters."""
        names = {str(actor.principal.id): name for name, actor in self.actors.items()}
        found: dict[tuple[str, str], str] = {}
        for key in self.streamed:
            name, block = key
            chars = self.oracle.chars.get(block, [])
            appended = (one for one in chars if names.get(one.principal) == name)
            found[key] = "".join(one.value for one in appended if one.op.operation == "append")
        return found

    def check_streams(self) -> None:
        """Every chunk that was appended is there, in order, whoever has typed around it."""
        for (name, block), flushed in self.flushed().items():
            due = "".join(self.streamed[name, block])
            if flushed != due:
                raise Violation(f"{name} streamed {due!r} into {block}, {flushed!r} arrived")
        for block, chars in self.oracle.chars.items():
            places = {item: at for at, item in enumerate(self.oracle.model.texts[block].items())}
            last: dict[str, int] = {}
            for char in chars:
                if char.op.operation == "append":
                    at = places[char.item]
                    if at < last.get(char.principal, -1):
                        raise Violation(f"{char.value!r} of a stream is not in order")
                    last[char.principal] = at

    async def check_blame(self, block: str) -> None:
        """The runs cover the text, and each character has its first author."""
        await self.settle()
        runs = (await self.kernel.call(self.actors["bo"], "block.blame", {"block_id": block}))[
            "runs"
        ]
        check_blame(self, block, runs)

    async def check_equal(self) -> None:
        """All replicas that have seen everything are equal, whatever the order."""
        await self.settle()
        for name, client in self.clients.items():
            more = set(client.blocks.keys()) ^ set(self.context.document.block_ids())
            if more:
                raise Violation(f"the client {name} has other blocks: {more}")
            for block in client.texts():
                self.compare(client.text(block), block, f"the client {name}")
        updates = [op.update for op in self.disk.ops(self.context.id, 0)]
        other = Document(self.ids.client_id())
        early = deliver(updates, self.rng, other.apply_update, other.state_vector)
        if early:
            raise Violation(f"{len(early)} updates build on what is not in the journal")
        self.check_same(other)
        other.close()

    def check_same(self, other: Document) -> None:
        mine = self.context.document
        if list(other.block_ids()) != list(mine.block_ids()):
            raise Violation(
                f"another replica has the blocks {list(other.block_ids())},"
                f" the kernel {list(mine.block_ids())}"
            )
        for block in mine.block_ids():
            if other.header(block) != mine.header(block):
                raise Violation(f"another replica has another header of {block}")
            if other.text(block) != mine.text(block):
                raise Violation(
                    f"another replica has {other.text(block)!r}, the kernel {mine.text(block)!r}"
                )


@contextlib.asynccontextmanager
async def open_world(rng: random.Random) -> AsyncIterator[World]:
    """A world in a folder of its own; both are gone at the end."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), rng)
        await world.open()
        try:
            yield world
        finally:
            await world.close()


def _nothing() -> None:
    pass


def check_blame(world: World, block: str, runs: list[dict[str, Any]]) -> None:
    """Whether `runs` tell of each character of a block who typed it first, and when."""
    chars = world.oracle.visible(block)
    at = 0
    for run in runs:
        if run["start"] != at or run["end"] <= at:
            raise Violation(f"blame goes on at {run['start']} after {at}")
        at = run["end"]
        for char in chars[run["start"] : run["end"]]:
            tag = author_of(char.value)
            typed = char.op.operation != "restore"  # which writes what others once typed
            if typed and tag is not None and NAMES[tag] != run["username"]:
                raise Violation(f"{char.value!r} of {NAMES[tag]} is given to {run['username']}")
            if char.principal != run["principal"]:
                raise Violation(f"{char.value!r} is given to {run['username']}")
            version = char.op.versions[block]
            if version != run["version"]:
                raise Violation(f"{char.value!r} came with version {version}, not {run['version']}")
            if run["time"] != iso_time(char.op.time):
                raise Violation(f"{char.value!r} came at another time than {run['time']}")
    if at != len(chars):
        raise Violation(f"blame covers {at} of {len(chars)} characters")
