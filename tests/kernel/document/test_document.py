"""A document reads back what was written, in code points, and tells exactly what changed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.genesis import genesis_client
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.types.enums import BlockKind, PrincipalKind
from antiphon_kernel.types.records import Member, TextSplice
from antiphon_kernel.yjs.state_vector import decode_state_vector
from antiphon_kernel.yjs.update import decode_update
from tests.kernel.document.structured import AMY, BLOCK, CONTEXT, HEADER, IDS, founded

PIECES = ("a", "é", "漢", "😀", "👨‍👩‍👧", "\r\n", "e\u0301", "\n", "\x85", "\u2028", " ")

texts = st.text(alphabet=st.sampled_from([c for piece in PIECES for c in piece]), max_size=12)


@pytest.fixture
def document() -> Document:
    return founded()


def joined(document: Document) -> Document:
    """A second replica of the same document; the two stay in step."""
    replica = Document(IDS.client_id())
    replica.apply_update(document.update_since())

    def forward(to: Document, origin: str) -> None:
        source = replica if to is document else document

        def pass_on(update: bytes, came: object) -> None:
            if came != "net":
                to.apply_update(update, "net")

        source.watch_updates(pass_on)

    forward(replica, "net")
    forward(document, "net")
    return replica


def applied(text: str, splices: tuple[TextSplice, ...]) -> str:
    for splice in splices:
        text = text[: splice.offset] + splice.inserted + text[splice.offset + splice.deleted :]
    return text


def test_founded_document_names_its_context_and_epoch(document: Document) -> None:
    replica = joined(document)
    assert replica.context == CONTEXT
    assert replica.label == "default"
    assert replica.epoch is not None
    assert genesis_client(replica.epoch) in decode_state_vector(replica.state_vector())


def test_member_and_label_that_change_are_read_anew_on_both_replicas(document: Document) -> None:
    replica = joined(document)
    for name, label in (("amy", "one"), ("ann", "two")):
        member = Member(AMY, name, PrincipalKind.HUMAN, 0)
        document.set_member(member)
        document.set_meta(label=label)
        assert [one.member(AMY) for one in (document, replica)] == [member, member]
        assert [one.label for one in (document, replica)] == [label, label]
    replica.set_meta(label=None)
    assert [one.label for one in (document, replica)] == [None, None]


def test_every_header_field_comes_back_on_another_replica(document: Document) -> None:
    header = HEADER._replace(
        kind=BlockKind.TOOL_CALL,
        parent=f"{CONTEXT}.{AMY}.7",
        tool_kind="shell",
        tool_name="shell",
        tool_call_id="c1",
        input='{"command": "ls"}',
        exit_code=3,
        duration_ms=350,
        is_error=True,
        truncated=True,
        collapsed=True,
        excluded=True,
        ephemeral=True,
        edited_after_done=True,
        drift_kind="pull",
        source_context=CONTEXT,
        source_block=BLOCK,
        path="a/b.py",
        language="python",
        media_type="text/plain",
        blob="0" * 64,
        blob_bytes=7,
        stop_reason="interrupted",
        stopped_by="amy",
        metadata={"schlüssel": [1, "zwei"]},
    )
    document.create_block(header, "x")
    assert joined(document).header(BLOCK) == header


def test_unknown_kind_is_kept_and_shown(document: Document) -> None:
    document.create_block(HEADER._replace(kind="hologram"))
    assert joined(document).header(BLOCK).kind == "hologram"


def test_removed_field_is_absent(document: Document) -> None:
    document.create_block(HEADER._replace(path="a"))
    document.set_fields(BLOCK, path=None)
    assert document.header(BLOCK).path is None


@pytest.mark.parametrize("offset", [-1, 4])
def test_splice_outside_the_text_changes_nothing(document: Document, offset: int) -> None:
    document.create_block(HEADER, "漢字😀")
    before = document.state_vector()
    with pytest.raises(ValueError, match="outside"):
        document.splice(BLOCK, offset, 0, "x")
    assert document.state_vector() == before


def test_splice_of_lone_surrogate_is_rejected_and_changes_nothing(document: Document) -> None:
    document.create_block(HEADER, "abc")
    before = document.state_vector()
    with pytest.raises(ValueError, match="surrogate"):
        document.splice(BLOCK, 1, 1, "\ud83d")
    with pytest.raises(ValueError, match="surrogate"):
        document.append(BLOCK, "\ude00")
    assert document.state_vector() == before
    assert document.text(BLOCK) == "abc"


@given(texts, st.integers(0, 12), st.integers(0, 12), texts)
def test_splice_at_every_position_of_any_text_is_a_string_splice(
    text: str, offset: int, deleted: int, inserted: str
) -> None:
    document = founded()
    document.create_block(HEADER, text)
    offset = min(offset, len(text))
    deleted = min(deleted, len(text) - offset)
    document.splice(BLOCK, offset, deleted, inserted)
    expected = text[:offset] + inserted + text[offset + deleted :]
    assert document.text(BLOCK) == expected
    fresh = Document(IDS.client_id())
    fresh.apply_update(document.update_since())
    assert fresh.text(BLOCK) == expected


@given(texts, texts)
def test_splices_in_order_are_written_like_one_after_the_other(before: str, after: str) -> None:
    document = founded()
    document.create_block(HEADER, before)
    splices = plan_difference(before, after)
    document.splice_all(BLOCK, splices)
    assert document.text(BLOCK) == after
    half = len(after) // 2
    document.splice(BLOCK, half, 0, "漢")
    fresh = Document(IDS.client_id())
    fresh.apply_update(document.update_since())
    assert fresh.text(BLOCK) == document.text(BLOCK) == after[:half] + "漢" + after[half:]


@pytest.mark.parametrize(
    "last",
    [TextSplice(1, 0, "x"), TextSplice(3, 9, ""), TextSplice(9, 0, "x"), TextSplice(3, -1, "")],
)
def test_splices_with_one_invalid_are_rejected_together(
    document: Document, last: TextSplice
) -> None:
    document.create_block(HEADER, "漢字😀abc")
    before = document.state_vector()
    with pytest.raises(ValueError, match="outside"):
        document.splice_all(BLOCK, [TextSplice(2, 1, "y"), last])
    assert document.state_vector() == before
    assert document.text(BLOCK) == "漢字😀abc"


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_changes_carry_a_text_forward_on_both_replicas(seed: int) -> None:
    rng = random.Random(seed)
    document = founded()
    document.create_block(HEADER)
    replica = joined(document)
    followed = {}
    for side in (document, replica):
        followed[side] = side.text(BLOCK)

        def follow(change: DocumentChange, side: Document = side) -> None:
            for text in change.texts:
                followed[side] = applied(followed[side], text.splices)

        side.watch(follow)
    oracle = ""
    for _ in range(60):
        writer = rng.choice([document, replica])
        with writer.transaction(None):
            for _ in range(rng.randint(1, 3)):
                piece = rng.choice(PIECES) * rng.randint(0, 2)
                if rng.random() < 0.3:
                    writer.append(BLOCK, piece)
                    oracle += piece
                    continue
                offset = rng.randint(0, len(oracle))
                deleted = min(len(oracle) - offset, rng.randint(0, 4))
                writer.splice(BLOCK, offset, deleted, piece)
                oracle = oracle[:offset] + piece + oracle[offset + deleted :]
        assert document.text(BLOCK) == replica.text(BLOCK) == oracle
    assert followed[document] == followed[replica] == oracle


def test_blocks_stand_in_the_order_of_their_keys_then_ids(document: Document) -> None:
    for number, order in enumerate(("a1", "a0", "a0", "a2")):
        document.create_block(HEADER._replace(id=f"{CONTEXT}.{AMY}.{number}", order=order))
    ids = [block.rsplit(".", 1)[1] for block in document.block_ids()]
    assert ids == ["1", "2", "0", "3"]
    changes: list[DocumentChange] = []
    document.watch(changes.append)
    document.set_fields(f"{CONTEXT}.{AMY}.3", order="Zz")
    assert [block.rsplit(".", 1)[1] for block in document.block_ids()] == ["3", "1", "2", "0"]
    assert changes[0].reordered


def test_second_block_under_one_id_is_refused(document: Document) -> None:
    document.create_block(HEADER)
    with pytest.raises(ValueError, match="already"):
        document.create_block(HEADER)


def test_document_with_many_blocks_at_once_keeps_their_order(document: Document) -> None:
    rng = random.Random(1)
    with document.transaction(None):
        for number in range(500):
            order = f"a{rng.choice('0123456789')}{rng.choice('VWXYZ')}"
            document.create_block(HEADER._replace(id=f"{CONTEXT}.{AMY}.{number}", order=order))
    replica = joined(document)
    assert list(replica.block_ids()) == list(document.block_ids())
    orders = [(replica.header(block).order, block) for block in replica.block_ids()]
    assert orders == sorted(orders)


def test_transaction_tells_which_ids_it_made_and_removed(document: Document) -> None:
    document.create_block(HEADER, "hello")
    with document.transaction("me") as written:
        document.splice(BLOCK, 0, 2, "xyz")
    assert written.update is not None
    assert sum(item.end - item.start for item in decode_update(written.update).inserted()) == 3
    assert sum(item.end - item.start for item in written.deleted) == 2
    assert written.change.touched == (BLOCK,)


@given(st.lists(st.tuples(st.integers(0, 60), texts.filter(bool)), max_size=12))
@settings(max_examples=60)
def test_text_that_is_known_to_be_text_is_taken_in_like_any_update(
    inserted: list[tuple[int, str]],
) -> None:
    document = founded()
    document.create_block(HEADER, "hello")
    quick, asked = Document(1), Document(1)
    for replica in (quick, asked):
        replica.apply_update(document.update_since())
        assert replica.text(BLOCK) == "hello"
    updates: list[bytes] = []
    document.watch_updates(lambda update, _: updates.append(update))
    for offset, text in inserted:
        document.splice(BLOCK, offset % (len(document.text(BLOCK)) + 1), 0, text)
    for update in updates:
        known, other = quick.apply_update(update, "net", is_text=True), asked.apply_update(update)
        assert known.change.texts == other.change.texts
        assert known.update == update
        assert other.update is not None
    assert quick.text(BLOCK) == asked.text(BLOCK) == document.text(BLOCK)
    assert quick.update_since() == asked.update_since()
    with quick.transaction("me") as written:
        quick.splice(BLOCK, 0, 1, "")
    assert written.update is not None and written.deleted


def test_transaction_without_effect_has_no_update(document: Document) -> None:
    document.create_block(HEADER, "hello")
    with document.transaction("me") as written:
        document.splice(BLOCK, 2, 0, "")
    assert written.update is None


def test_cost_of_an_append_does_not_grow_with_the_text() -> None:
    import time

    document = founded()
    document.create_block(HEADER)

    def cost(appends: int) -> float:
        best = float("inf")
        for _ in range(5):
            start = time.process_time()
            for _ in range(appends):
                document.append(BLOCK, "x" * 50)
            best = min(best, time.process_time() - start)
        return best

    small = cost(40)
    while len(document.text(BLOCK)) < 1_000_000:
        document.append(BLOCK, "y" * 10_000)
    assert cost(40) < small * 8
