"""Contexts fork, go on and drift to each other at random; every word arrives once, with its author.

Each writer has letters of their own, and each word is written once. Every text has a stock CRDT
document beside it, and a merge is what theirs makes of both. `ANTIPHON_CASES` says how many seeds
are played.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import Any, Final

import pytest
from pycrdt import Doc, Text

from antiphon_kernel.contexts import Context
from antiphon_kernel.contexts.commit_types import CommitHandle
from antiphon_kernel.contexts.lineage import merging
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.text.merge_edits import EditConflict, EditMerge, Excerpt, merge_edits
from antiphon_kernel.text.splice_diff import apply_script, as_script, plan_difference
from antiphon_kernel.tools import drift
from antiphon_kernel.tools.drift import resume_drifts
from antiphon_kernel.types.drift import drift_origin, is_drifted
from antiphon_kernel.types.enums import BlockKind, DriftState, PrincipalKind
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor, TextSplice
from tests.errors import raises
from tests.kernel.kernel.calls import OpenKernel

SEEDS: Final = range(int(os.environ.get("ANTIPHON_CASES", "2")))
STEPS: Final = 60
MOST_CONTEXTS: Final = 5

HUMAN, MODEL = PrincipalKind.HUMAN, PrincipalKind.MODEL
WRITERS: Final = {"amy": HUMAN, "bo": HUMAN, "aria": MODEL, "cleo": MODEL}
LETTERS: Final = dict(zip(WRITERS, ("abcde", "éèêëç", "klmno", "бвгдж"), strict=True))
LENGTH: Final = 5
"""Letters of a word."""
AUTHORS: Final = {letter: name for name, letters in LETTERS.items() for letter in letters}

Texts = dict[str, str]
"""Shown texts of the blocks of a context, by id."""


class Replica:
    """One text in a stock CRDT document."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.doc: Doc[Any] = Doc(client_id=rng.getrandbits(32))
        self._text = self.doc.get("text", type=Text)
        self.is_typed_again = False
        """Whether it has new characters in the place of some that others may have."""

    def __str__(self) -> str:
        return str(self._text)

    def splice(self, offset: int, deleted: int, inserted: str) -> None:
        """Put new text behind the old, so that it is clear where it is."""
        text, end = str(self), offset + deleted
        start, stop = (len(text[:at].encode()) for at in (offset, end))
        self._text.insert(stop, inserted)
        del self._text[start:stop]

    def become(self, text: str) -> None:
        """Take over how conflicts were resolved."""
        for one in plan_difference(str(self), text):
            self.is_typed_again |= one.inserted != ""
            self.splice(one.offset, one.deleted, one.inserted)

    def merged(self, *others: Replica) -> Replica:
        """A new one that has all that this one and others have."""
        found = Replica(self._rng)
        for one in (self, *others):
            found.doc.apply_update(one.doc.get_update())
            found.is_typed_again |= one.is_typed_again
        return found


@dataclass(slots=True)
class Place:
    """A context, as the machine knows it."""

    id: str
    parent: str | None = None
    replicas: dict[str, Replica] = field(default_factory=dict)
    """By block; of those that a merge can be about."""
    originals: dict[str, str] = field(default_factory=dict)
    """The block of the parent that is the original of a block, or else its last copy."""
    declined: dict[str, int] = field(default_factory=dict)
    """How often blocks had been changed that were there at the fork or last merge."""
    changes: Counter[str] = field(default_factory=Counter)
    """How often each block has been changed."""


@dataclass(slots=True)
class Step:
    """A drift that was the last change of its target, and what it changed there."""

    by: str
    source: str
    target: str
    before: Texts
    after: Texts
    known: list[tuple[dict[str, Replica], dict[str, str], dict[str, int]]]
    """Replicas of the target, originals and what is declined of the source, before and after."""
    undone: bool = False
    is_known: bool = False
    """Whether another context has got what the target had since."""

    @property
    def new(self) -> list[str]:
        return [block for block in self.after if block not in self.before]

    @property
    def changed(self) -> list[str]:
        return [block for block, text in self.after.items() if self.before.get(block) != text]


class _KilledError(Exception):
    """The kernel is no more."""


class Machine:
    """Contexts and who writes in them."""

    def __init__(self, open_kernel: OpenKernel, rng: random.Random) -> None:
        self._open_kernel, self.rng = open_kernel, rng
        self._numbers = count()
        self.places: dict[str, Place] = {}
        self.last: dict[str, Step] = {}
        """By label."""
        self.native: set[str] = set()
        """Blocks that a fork began with."""
        self.doubled: set[str] = set()
        """Words that a merge with both sides has put in two places: other characters in each."""
        self.asked = 0
        """Drifts so far."""
        self.seen: Counter[str] = Counter()
        """How often something of interest has happened."""
        self.done: list[str] = []
        self.kinds = ["edit"] * 8 + ["merge"] * 4 + ["undo", "redo"] * 2
        self.kinds += ["create", "fork", "push", "pull", "restart"]
        self.kernel: Kernel
        self._actors: dict[str, Actor]

    # What happens

    async def start(self) -> None:
        await self._open()
        context = await self.kernel.context()
        self.places[context.label] = Place(context.id)
        for _ in range(2):
            await self.create()
        await self.fork()

    async def _open(self) -> None:
        self.kernel = kernel = await self._open_kernel()
        self._actors = {
            name: kernel.open_session(await kernel.principal(name, kind), "test")
            for name, kind in WRITERS.items()
        }

    async def play(self) -> None:
        await self.start()
        for _ in range(STEPS):
            kind = self.rng.choice(self.kinds)
            self.done.append(kind)
            await getattr(self, kind)()
        await self.check()

    def word(self, writer: str) -> str:
        number, letters = next(self._numbers), LETTERS[writer]
        found = ""
        for _ in range(LENGTH):
            number, digit = divmod(number, len(letters))
            found += letters[digit]
        return found

    def _writer(self) -> str:
        return self.rng.choice([*WRITERS])

    def _label(self) -> str:
        return self.rng.choice([*self.places])

    async def _call(self, writer: str, tool: str, **params: Any) -> dict[str, Any]:
        return await self.kernel.call(self._actors[writer], tool, params)

    async def _context(self, label: str) -> Context:
        return await self.kernel.context(self.places[label].id)

    async def shown(self, label: str) -> Texts:
        document = (await self._context(label)).document
        headers = document.headers(document.block_ids())
        return {
            one.id: document.text(one.id)
            for one in headers
            if not one.excluded and one.kind != BlockKind.DRIFT
        }

    async def create(self) -> None:
        label, writer = self._label(), self._writer()
        shown = await self.shown(label)
        if not shown:
            writer = "amy"
        ends = self.rng.choices((" ", " ", " ", ". ", "\n"), k=self.rng.randint(2, 7))
        text = "".join(self.word(writer) + end for end in ends)
        new = {"kind": "text", "role": "user", "content": text, "status": "done"}
        if WRITERS[writer] is MODEL:
            new |= {"role": "model", "parent_id": self.rng.choice([*shown])}
        made = await self._call(writer, "block.create", context=self.places[label].id, **new)
        replica = self.places[label].replicas[made["block_id"]] = Replica(self.rng)
        replica.splice(0, 0, text)
        self.last.pop(label, None)

    async def edit(self) -> None:
        label, writer = self._label(), self._writer()
        shown = await self.shown(label)
        if not shown:
            return
        block = self.rng.choice([*shown])
        text = shown[block]
        words = [found.span() for found in re.finditer(r"\S+\s*", text)]
        start, end = self.rng.choice([*words, (len(text), len(text))])
        kind = self.rng.choice(("insert", "replace", "delete"))
        inserted = "" if kind == "delete" else self.word(writer)
        if kind == "insert" or start == end:
            end, inserted = start, inserted + self.rng.choice((" ", " ", "\n"))
        elif kind == "replace":
            end = start + len(text[start:end].rstrip())
        await self._splice(label, writer, block, start, end - start, inserted)

    async def _splice(
        self, label: str, writer: str, block: str, offset: int, deleted: int, inserted: str
    ) -> None:
        params = {"block_id": block, "offset": offset, "delete_count": deleted}
        await self._call(writer, "block.splice", **params, insert=inserted)
        if (replica := self.places[label].replicas.get(block)) is not None:
            replica.splice(offset, deleted, inserted)
        self.places[label].changes[block] += 1
        self.last.pop(label, None)

    async def fork(self) -> None:
        if len(self.places) == MOST_CONTEXTS:
            return
        label, new = self._label(), f"fork-{len(self.places)}"
        source = self.places[label]
        made = await self._call("amy", "context.fork", context=source.id, label=new)
        self._seen(label)
        place = self.places[new] = Place(made["context_id"], label)
        document = (await self._context(new)).document
        for header in document.headers(document.block_ids()):
            if (replica := source.replicas.get(header.source_block or "")) is not None:
                place.replicas[header.id] = replica.merged()
                place.originals[header.id] = str(header.source_block)
                place.declined[header.id] = 0
                self.native.add(header.id)

    def _seen(self, label: str) -> None:
        if label in self.last:
            self.last[label].is_known = True

    async def push(self) -> None:
        await self._move("drift.push")

    async def pull(self) -> None:
        await self._move("drift.pull")

    async def _move(self, tool: str) -> None:
        source, target, writer = self._label(), self._label(), self._writer()
        shown = await self.shown(source)
        if source == target or not shown:
            return
        blocks = [one for one in shown if self.rng.random() < 0.4] or [next(iter(shown))]
        ends = {"drift.push": ("to", "context"), "drift.pull": ("context", "source")}[tool]
        places: tuple[Any, Any] = self.places[target].id, self.places[source].id
        params = dict(zip(ends, places, strict=True))
        sent = self._replicas(source, blocks)
        step = await self._drift(writer, source, target, tool, blocks=blocks, **params)
        assert {one: step.after[one] for one in step.before} == step.before
        self._arrived(step, sent)

    def _replicas(self, label: str, blocks: Sequence[str]) -> dict[str, Replica]:
        return {block: self.places[label].replicas[block].merged() for block in blocks}

    def _arrived(self, step: Step, sent: dict[str, Replica]) -> None:
        """Copies are what the originals were; a fork and its parent have both from now on."""
        assert [step.after[one] for one in step.new] == [*map(str, sent.values())]
        source, target = self.places[step.source], self.places[step.target]
        copies = dict(zip(sent, step.new, strict=True))
        target.replicas = {**target.replicas, **dict(zip(step.new, sent.values(), strict=True))}
        if source.parent == step.target:
            native = {block: one for block, one in source.originals.items() if block in self.native}
            source.originals = {**source.originals, **copies, **native}
        step.known.append((target.replicas, source.originals, source.declined))

    async def _drift(
        self,
        writer: str,
        source: str,
        target: str,
        tool: str,
        /,
        *,
        between: int = 3,
        **params: Any,
    ) -> Step:
        """Drift; now and then the kernel ends before it arrives, and others write meanwhile."""
        place, of = self.places[target], self.places[source]
        before, known = await self.shown(target), [(place.replicas, of.originals, of.declined)]
        self.asked += 1
        if self.rng.random() < 0.2:
            self.seen["killed"] += 1
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(drift, "deliver", _killed)
                with pytest.raises(_KilledError):
                    await self._call(writer, tool, **params)
            assert await self.shown(target) == before
            await self.kernel.close()
            await self._open()
            for _ in range(self.rng.randint(0, between)):
                await self.edit()
            before = await self.shown(target)
            await resume_drifts(self.kernel)
        else:
            await self._call(writer, tool, **params)
        after = await self.shown(target)
        self._seen(source)
        step = self.last[target] = Step(writer, source, target, before, after, known)
        place.changes.update(step.changed)
        return step

    async def merge(self) -> None:
        forks = [one for one in self.places if self.places[one].parent is not None]
        if not forks:
            return
        label, writer = self.rng.choice(forks), self._writer()
        place, target = self.places[label], str(self.places[label].parent)
        here, there = await self.shown(target), await self.shown(label)
        preview = await self._call(writer, "drift.preview", source=place.id)
        merged = self._check_preview(label, preview, here, there)
        conflicts = [one for change in preview["changes"] for one in change["conflicts"]]
        assert [one["number"] for one in conflicts] == [*range(preview["conflicts"])]
        resolve = {str(one["number"]): self._resolution(writer) for one in conflicts}
        offered = [one["source_block"] for one in preview["offers"]]
        assert offered == await self._offered(label, here, there), self.done
        blocks = [one for one in offered if self.rng.random() < 0.7]
        if not (preview["changes"] or blocks):
            return
        params = {"source": place.id, "blocks": blocks, "plan": preview["plan"]}
        if conflicts and self.rng.random() < 0.3:
            with raises(ErrorCode.MERGE_CONFLICT):
                await self._call(writer, "drift.merge", **params)
            self.asked += 1
            assert await self.shown(target) == here
        self.seen["conflict"] += len(conflicts)
        self.seen["merge"] += 1
        step = await self._drift(
            writer, label, target, "drift.merge", between=0, **params, resolve=resolve
        )
        changed = {one["block_id"]: resolved(one, resolve) for one in preview["changes"]}
        expected = {block: changed.get(block, text) for block, text in here.items()}
        assert {block: step.after[block] for block in here} == expected
        for block, replica in merged.items():
            replica.become(step.after[block])
            words = Counter(step.after[block].split())
            self.doubled |= {one for one, times in words.items() if times > 1}
        self.places[target].replicas = {**self.places[target].replicas, **merged}
        place.declined = {**place.declined, **{block: place.changes[block] for block in there}}
        self._arrived(step, self._replicas(label, blocks))

    def _check_preview(
        self, label: str, preview: dict[str, Any], here: Texts, there: Texts
    ) -> dict[str, Replica]:
        """Compare a preview with what the CRDT makes of both; returns that."""
        place = self.places[label]
        replicas = self.places[str(place.parent)].replicas
        changes = {one["block_id"]: one for one in preview["changes"]}
        found: dict[str, Replica] = {}
        for block, original in place.originals.items():
            if original not in here or block not in there:
                continue
            ours, theirs = replicas[original], place.replicas[block]
            assert (str(ours), str(theirs)) == (here[original], there[block])
            merged = found[original] = ours.merged(theirs)
            change = changes.get(original)
            after = here[original] if change is None else change["after"]
            if change is not None:
                assert (change["before"], change["source_block"]) == (here[original], block)
                for one in change["conflicts"]:
                    assert after[one["start"] : one["end"]] == one["ours"]
            if change is None or not change["conflicts"]:
                parts = str(ours), str(theirs)
                if not merged.is_typed_again:
                    self.seen["exact"] += change is not None
                if order(after, *parts) != order(str(merged), *parts):
                    assert merged.is_typed_again, self.done
                    words, mine, others = ({*text.split()} for text in (after, *parts))
                    assert (mine & others) - self.doubled <= words <= mine | others
        assert changes.keys() & here.keys() <= found.keys()
        return found

    async def _offered(self, label: str, here: Texts, there: Texts) -> list[str]:
        """Return what the parent does not have, has not given, and did not decline as it is."""
        place, document = self.places[label], (await self._context(label)).document
        parent = self.places[str(place.parent)].id
        return [
            block
            for block in there
            if place.originals.get(block) not in here
            and place.declined.get(block) != place.changes[block]
            and there[block]
            and not (
                is_drifted((header := document.header(block)).metadata)
                and header.source_context == parent
            )
        ]

    def _resolution(self, writer: str) -> dict[str, str]:
        side = self.rng.choice(("ours", "theirs", "both", None))
        return {"side": side} if side else {"text": f"{self.word(writer)} "}

    async def undo(self) -> None:
        await self._turn("undo")

    async def redo(self) -> None:
        await self._turn("redo")

    async def _turn(self, turn: str) -> None:
        """Take back or bring again what a drift has brought, if nothing has come since."""
        labels = [one for one, step in self.last.items() if step.undone == (turn == "redo")]
        if not labels:
            return
        label = self.rng.choice(labels)
        step, place = self.last[label], self.places[label]
        self.seen[turn] += 1
        await self._call(step.by, f"block.{turn}", context=place.id)
        step.undone = turn == "undo"
        expected = step.before if step.undone else step.after
        assert await self.shown(label) == expected
        source = self.places[step.source]
        replicas, originals, declined = step.known[not step.undone]
        if step.is_known:  # to others these are edits, and to the source it never was
            before, after = (one for one, *_ in step.known)
            drifted = [one for one in replicas if before.get(one) is not after[one]]
            replicas = {one: place.replicas.get(one, replicas[one]) for one in replicas}
            for one in drifted:
                replicas[one] = replicas[one].merged()
                replicas[one].is_typed_again = True
                if one in expected:
                    replicas[one].become(expected[one])
        place.replicas = replicas
        if source.parent == step.target:
            source.originals, source.declined = originals, declined
        place.changes.update(step.changed)

    async def restart(self) -> None:
        await self.kernel.close()
        await self._open()
        await resume_drifts(self.kernel)

    # What has to hold

    async def check(self) -> None:
        """Nothing has arrived twice, and everything names its authors."""
        listed = (await self._call("amy", "drift.list"))["drifts"]
        assert len(listed) == self.asked
        assert DriftState.STAGED not in {one["state"] for one in listed}
        for label in self.places:
            await self._check_once(label, listed)
            for block, text in (await self.shown(label)).items():
                await self._check_authors(block, text)

    async def _check_once(self, label: str, listed: list[dict[str, Any]]) -> None:
        context = await self._context(label)
        headers = context.document.headers(context.document.block_ids())
        origins = [drift_origin(one.metadata) for one in headers if one.kind == BlockKind.DRIFT]
        arrived = Counter(one.id for one in origins if one is not None)
        wanted = {
            one["drift_id"]: int(one["state"] != DriftState.REFUSED)
            for one in listed
            if one["target_context"] == context.id
        }
        own = {one: arrived[one] for one in wanted}
        assert own == wanted, (own, self.done)

    async def _check_authors(self, block: str, text: str) -> None:
        runs = (await self._call("amy", "block.blame", block_id=block))["runs"]
        for run in runs:
            letters = text[run["start"] : run["end"]]
            wrong = {AUTHORS[one] for one in letters if one in AUTHORS} - {run["username"]}
            assert not wrong, (letters, run, self.done)


def resolved(change: dict[str, Any], resolve: dict[str, dict[str, str]]) -> str:
    """The text of a changed block with its conflicts resolved."""
    text = str(change["after"])
    for one in reversed(change["conflicts"]):
        choice = resolve[str(one["number"])]
        sides = {"ours": one["ours"], "theirs": one["theirs"], "both": both(one)}
        piece = choice["text"] if "text" in choice else sides[choice["side"]]
        text = text[: one["start"]] + piece + text[one["end"] :]
    return text


def both(conflict: dict[str, Any]) -> str:
    base, ours, theirs = (
        Excerpt(0, len(conflict[one]), conflict[one]) for one in ("base", "ours", "theirs")
    )
    return EditConflict(base, ours, theirs, ours, (), 0).both


def order(text: str, ours: str, theirs: str) -> list[list[str]]:
    """The words of a merge; those that only one side has and that stand side by side are sorted.

    Which of two insertions at one place comes first depends on the ids of clients; they may stand
    without a blank between.
    """
    common = {*ours.split()} & {*theirs.split()}
    groups = groupby(re.findall(rf"\w{{{LENGTH}}}", text), lambda word: word in common)
    return [[*words] if is_common else sorted(words) for is_common, words in groups]


async def _killed(*_: object) -> None:
    raise _KilledError


@pytest.fixture
async def machine(open_kernel: OpenKernel, seed: int) -> Machine:
    return Machine(open_kernel, random.Random(seed))


@pytest.mark.parametrize("seed", SEEDS)
async def test_what_drifts_arrives_once_with_its_authors(machine: Machine) -> None:
    await machine.play()


def arrives_without_its_id(patch: pytest.MonkeyPatch) -> None:
    """Control: the change of the target does not say which drift it delivers."""

    def write(self: Context, *arguments: Any, drift: object = None, **options: Any) -> CommitHandle:
        return found(self, *arguments, **options)

    found = Context.write
    patch.setattr(Context, "write", write)


def merges_against_what_the_parent_has(patch: pytest.MonkeyPatch) -> None:
    """Control: the base is the parent's present text, not that of the fork point."""

    def merge(base: str, ours: Sequence[TextSplice], theirs: Sequence[TextSplice]) -> EditMerge:
        now, there = apply_script(base, ours), apply_script(base, theirs)
        return merge_edits(now, [], as_script(plan_difference(now, there)))

    patch.setattr(merging, "merge_edits", merge)


FAULTS: Final[list[Callable[[pytest.MonkeyPatch], None]]] = [
    arrives_without_its_id,
    merges_against_what_the_parent_has,
]


@pytest.mark.parametrize("seed", [0])
@pytest.mark.parametrize("fault", FAULTS)
async def test_machine_finds_a_fault(
    machine: Machine, fault: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        await machine.play()
