"""An index that was kept is as good as one that is read off the document, and much quicker to get.

Random raw updates behind a restart are in tests/kernel/invariants.
"""

from __future__ import annotations

import logging
import random
from asyncio import gather
from itertools import product
from pathlib import Path

import pytest

from antiphon_kernel.document.document import Document
from antiphon_kernel.types.enums import Status
from antiphon_kernel.validation import ItemIndex, LazyItemIndex
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct, decode_update
from tests.bench.filled import filled
from tests.kernel.document.structured import HEADER
from tests.kernel.growth.work import calls_of

BLOCKS = ("c.p.1", "c.p.2", "c.p.3")


def written(seed: int, edits: int) -> tuple[Document, list[bytes]]:
    """A document that three clients have written, and the updates it came from."""
    chance = random.Random(seed)
    replicas = [Document(client) for client in (5, 700, 2**31)]
    updates: list[bytes] = []
    for replica in replicas:
        replica.watch_updates(lambda update, origin: updates.append(update) if origin else None)
    for number, block in enumerate(BLOCKS):
        with replicas[0].transaction("own"):
            header = HEADER._replace(id=block, order=f"a{number}")
            replicas[0].create_block(header, "some 漢字 😀 text")
    for _ in range(edits):
        one, block = chance.choice(replicas), chance.choice(BLOCKS)
        for other in replicas:
            if chance.random() < 0.5:
                one.apply_update(other.update_since(one.state_vector()), "")
        if block not in one:
            continue
        length = len(one.text(block))
        at = chance.randrange(length + 1)
        with one.transaction("own"):
            if chance.random() < 0.2:
                status = chance.choice((Status.RUNNING, Status.DONE))
                one.set_fields(block, status=status)
            else:
                gone = min(chance.randrange(3), length - at)
                one.splice(block, at, gone, chance.choice(("a", "漢😀", "")))
    for other in replicas[1:]:
        replicas[0].apply_update(other.update_since(replicas[0].state_vector()), "")
    return replicas[0], updates


def read_off(document: Document) -> ItemIndex:
    index = ItemIndex()
    index.follow(document.update_since())
    return index


def copied(index: ItemIndex) -> ItemIndex:
    kept, copy = index.encode(), ItemIndex()
    assert kept is not None
    for _ in copy.decode_in_parts(kept):
        pass
    return copy


def assert_same(document: Document, one: ItemIndex, other: ItemIndex) -> None:
    """Both say the same of every item of a document."""
    assert one.ends() == other.ends()
    assert sorted(one.deleted) == sorted(other.deleted)
    for block in document.block_ids():
        assert one.block(block) is not None
    for struct in decode_update(document.update_since()).structs:
        for clock in range(struct.clock, struct.clock + struct.length):
            item = ItemId(struct.client, clock)
            found, expected = one.place(item), other.place(item)
            assert found.nature is expected.nature
            assert found.container.block == expected.container.block
            assert found.container.path == expected.container.path
            assert found.container.written == expected.container.written
            assert (one.made_by(item) is None) == (other.made_by(item) is None)
            splits = one.splits_surrogates(struct.client, clock)
            assert splits == other.splits_surrogates(struct.client, clock)


@pytest.mark.parametrize("seed", range(2))
def test_index_that_was_kept_follows_what_comes_later(seed: int) -> None:
    document, _ = written(seed, 40)
    index = read_off(document)
    copy = copied(index)
    assert_same(document, copy, index)
    assert [copy.statuses(one) for one in BLOCKS] == [index.statuses(one) for one in BLOCKS]
    later, _ = written(seed, 80)  # the same, and more
    update = later.update_since(document.state_vector())
    index.follow(update)
    copy.follow(update)
    assert copy.encode() == index.encode()
    assert_same(later, copy, index)


def test_order_in_texts_that_was_kept_fits_the_same_items() -> None:
    document, _ = written(3, 25)
    fresh = read_off(document)
    kept = copied(fresh)
    structs = decode_update(document.update_since()).structs
    known = [ItemId(one.client, one.clock) for one in structs if one.kind is ContentKind.STRING]
    for client, origin, right in product({one.client for one in known}, known, known):
        clock = fresh.end(client)
        item = Struct(client, clock, 1, ContentKind.STRING, origin, right, content="x")
        assert kept.order.fit([(item, clock)]) == fresh.order.fit([(item, clock)])


async def test_kept_index_with_later_updates_is_whole() -> None:
    document, _ = written(4, 30)
    kept, vector = read_off(document).encode(), document.state_vector()
    later, _ = written(4, 60)
    lazy = LazyItemIndex(later, kept, [later.update_since(vector)])
    with later.transaction("own") as last:
        later.splice(BLOCKS[0], 0, 0, "one more")
    assert last.update is not None
    lazy.follow(last.update)
    await lazy.read()
    assert_same(later, lazy.item_index, read_off(later))


@pytest.mark.parametrize(
    ("kept", "reason"),
    [
        (b"other bytes", "another format"),
        (b"columns1 and more", "cannot be read"),
        (None, "were not kept"),
    ],
)
async def test_kept_index_that_does_not_fit_is_left_out(
    kept: bytes | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    document, _ = written(5, 30)
    if kept is None:
        kept = read_off(written(5, 10)[0]).encode()  # of an earlier state
    lazy = LazyItemIndex(document, kept)
    with caplog.at_level(logging.WARNING):
        assert_same(document, lazy.item_index, read_off(document))
    assert reason in caplog.text
    assert lazy.ready


def test_index_that_waits_for_an_item_is_not_kept() -> None:
    _, updates = written(6, 60)
    index = ItemIndex()
    for update in updates[len(updates) // 2 :]:
        index.follow(update)
    assert index.missing is not None
    assert index.encode() is None


async def test_first_raw_update_after_a_start_reads_the_kept_index(tmp_path: Path) -> None:
    async with filled(tmp_path) as kernel:
        await gather(*(kernel.block("some words\n") for _ in range(100)))
        fresh = await calls_of(kernel.context.structure.read())
        before = read_off(kernel.context.document)
    async with filled(tmp_path) as kernel:
        kept = await calls_of(kernel.context.structure.read())
        assert_same(kernel.context.document, kernel.context.structure.item_index, before)
    assert kept < fresh / 4, (kept, fresh)


async def test_index_is_kept_on_when_nobody_needs_it(tmp_path: Path) -> None:
    async with filled(tmp_path) as kernel:
        block = await kernel.block("some words\n")
        await kernel.context.structure.read()
    async with filled(tmp_path) as kernel:
        for _ in range(kernel.context.limits.snapshot_transactions_on_close):
            await kernel.call("block.append", block_id=block, text="x")
        assert not kernel.context.structure.ready
    async with filled(tmp_path) as kernel:
        snapshot = await kernel.kernel.journal.snapshots.read(kernel.context.row)
        assert snapshot is not None
        assert snapshot.seq == kernel.context.seq
        copy = ItemIndex()
        for _ in copy.decode_in_parts(snapshot.item_index):
            pass
        assert_same(kernel.context.document, copy, read_off(kernel.context.document))
