"""A document reads back what was written, in code points, and tells exactly what changed."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pycrdt import Doc, Map, Text

from antiphon_kernel.document.block_text import RUN_BYTES
from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document
from antiphon_kernel.document.genesis import genesis_client
from antiphon_kernel.document.header import ENUMS, FIELDS, Form
from antiphon_kernel.text.splice_diff import plan_difference
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.records import BlockHeader, Member, TextSplice
from antiphon_kernel.yjs.id_set import decode_state_vector
from antiphon_kernel.yjs.update import decode_update
from tests.kernel.document.structured import (
    AMY,
    BLOCK,
    CONTEXT,
    HEADER,
    founded,
    replica_of,
)

PIECES = ("a", "é", "漢", "😀", "👨‍👩‍👧", "\r\n", "e\u0301", "\n", "\x85", "\u2028", " ")

texts = st.text(alphabet=st.sampled_from([c for piece in PIECES for c in piece]), max_size=12)


@pytest.fixture
def document() -> Document:
    return founded()


def joined(document: Document) -> Document:
    """A second replica of the same document; the two stay in step."""
    replica = replica_of(document)

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


def test_removed_field_is_absent(document: Document) -> None:
    document.create_block(HEADER._replace(path="a"))
    document.set_fields(BLOCK, path=None)
    assert document.header(BLOCK).path is None


BEFORE = "漢字😀abc"


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (lambda document: document.splice(BLOCK, -1, 0, "x"), "outside"),
        (lambda document: document.splice(BLOCK, 7, 0, "x"), "outside"),
        (lambda document: document.splice(BLOCK, 1, 1, "\ud83d"), "surrogate"),
        (lambda document: document.append(BLOCK, "\ude00"), "surrogate"),
        *(
            (partial(Document.splice_all, block=BLOCK, splices=[TextSplice(2, 1, "y"), last]), why)
            for last, why in (
                (TextSplice(1, 0, "x"), "outside"),
                (TextSplice(3, 9, ""), "outside"),
                (TextSplice(9, 0, "x"), "outside"),
                (TextSplice(3, -1, ""), "outside"),
                (TextSplice(3, 1, "\ud83d"), "surrogate"),
            )
        ),
    ],
)
def test_write_outside_the_text_or_of_half_a_character_changes_nothing(
    document: Document, write: Callable[[Document], None], reason: str
) -> None:
    document.create_block(HEADER, BEFORE)
    before = document.state_vector()
    with pytest.raises(ValueError, match=reason):
        write(document)
    assert document.state_vector() == before
    assert document.text(BLOCK) == BEFORE


@given(texts, texts)
def test_splices_in_order_are_written_like_one_after_the_other(before: str, after: str) -> None:
    document = founded()
    document.create_block(HEADER, before)
    splices = plan_difference(before, after)
    document.splice_all(BLOCK, splices)
    assert document.text(BLOCK) == after
    half = len(after) // 2
    document.splice(BLOCK, half, 0, "漢")
    fresh = replica_of(document)
    assert fresh.text(BLOCK) == document.text(BLOCK) == after[:half] + "漢" + after[half:]


@given(st.integers(0, 2**32))
def test_changes_carry_texts_forward_on_both_replicas_and_tell_of_the_same(seed: int) -> None:
    rng = random.Random(seed)
    document, blocks = founded(), (BLOCK, f"{BLOCK}0")
    for block in blocks:
        document.create_block(HEADER._replace(id=block))
    sides = (document, joined(document))
    oracle = dict.fromkeys(blocks, "")
    followed = {side: dict(oracle) for side in sides}
    told: dict[Document, list[object]] = {side: [] for side in sides}
    for side in sides:
        assert [side.text(block) for block in blocks] == ["", ""]

        def follow(change: DocumentChange, side: Document = side) -> None:
            texts = {(text.block, text.section) for text in change.texts}
            told[side].append((set(change.touched), set(change.headers), texts))
            for text in change.texts:
                followed[side][text.block] = applied(followed[side][text.block], text.splices)

        side.watch(follow)
    for _ in range(60):
        writer = rng.choice(sides)
        with writer.transaction(None):
            for _ in range(rng.randint(1, 3)):
                block, piece = rng.choice(blocks), rng.choice(PIECES) * rng.randint(0, 2)
                chance, text = rng.random(), oracle[block]
                if chance < 0.2:
                    writer.set_fields(block, tool_name=str(chance))
                elif chance < 0.4:
                    writer.append(block, piece)
                    oracle[block] += piece
                else:
                    offset = rng.randint(0, len(text))
                    deleted = min(len(text) - offset, rng.randint(0, 4))
                    writer.splice(block, offset, deleted, piece)
                    oracle[block] = text[:offset] + piece + text[offset + deleted :]
        for side in sides:
            assert {block: side.text(block) for block in blocks} == oracle
    assert {block: replica_of(document).text(block) for block in blocks} == oracle
    assert [followed[side] for side in sides] == [oracle, oracle]
    assert told[sides[0]] == told[sides[1]]


def test_text_that_somebody_replaces_is_written_where_it_is_now(document: Document) -> None:
    document.create_block(HEADER, "begun")
    document.append(BLOCK, " here")
    other: Doc[Any] = Doc()
    blocks = other.get("blocks", type=Map)
    other.apply_update(document.update_since())
    blocks[BLOCK]["content"] = Text("another")
    document.apply_update(other.get_update(document.state_vector()))
    document.append(BLOCK, " text")
    other.apply_update(document.update_since())
    assert str(blocks[BLOCK]["content"]) == "another text"


def test_blocks_stand_in_the_order_of_their_keys_then_ids(document: Document) -> None:
    for number, order in enumerate(("a1", "a0", "a0", "a2")):
        document.create_block(HEADER._replace(id=f"{CONTEXT}.{AMY}.{number}", order=order))
    ids = [block.rsplit(".", 1)[1] for block in document.block_ids()]
    assert ids == ["1", "2", "0", "3"]
    document.set_fields(f"{CONTEXT}.{AMY}.3", order="Zz")
    assert [block.rsplit(".", 1)[1] for block in document.block_ids()] == ["3", "1", "2", "0"]


def test_second_block_under_one_id_is_refused(document: Document) -> None:
    document.create_block(HEADER)
    with pytest.raises(ValueError, match="already"):
        document.create_block(HEADER)


def test_transaction_tells_which_ids_it_made_and_removed(document: Document) -> None:
    document.create_block(HEADER, "hello")
    with document.transaction("me") as written:
        document.splice(BLOCK, 0, 2, "xyz")
    assert written.update is not None
    assert sum(item.end - item.start for item in decode_update(written.update).inserted()) == 3
    assert sum(item.end - item.start for item in written.deleted) == 2
    assert written.change.touched == (BLOCK,)


@given(st.lists(st.tuples(st.integers(0, 60), texts.filter(bool)), max_size=12))
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


def test_appended_text_is_in_items_that_stay_cheap_to_append_to() -> None:
    document = founded()
    document.create_block(HEADER)
    for _ in range(20):
        document.append(BLOCK, "y" * 5_000)
        document.append(BLOCK, "漢")
    structs = decode_update(document.update_since()).structs
    assert max(one.length for one in structs) <= RUN_BYTES + 5_000


WORDS = st.text(min_size=1, max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.sampled_from((0, -1, 2**53, 10**20, 0.5, -1e300)) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
OF_FORMS: dict[Form, st.SearchStrategy[Any]] = {
    Form.STRING: WORDS,
    Form.FLAG: st.booleans(),
    Form.NUMBER: st.sampled_from((0, 1, -15, 350, 2**31, 2**53 - 1)),
    Form.OBJECT: st.dictionaries(WORDS, JSON, max_size=3),
}


def values(name: str) -> st.SearchStrategy[Any]:
    """Values of a field: of a closed set also one that only a later version knows."""
    if name in ENUMS:
        return st.sampled_from((*ENUMS[name], "of a later version"))
    set_values = OF_FORMS[FIELDS[name]]
    return (
        set_values | st.none() if BlockHeader._field_defaults.get(name, "") is None else set_values
    )


HEADERS = st.fixed_dictionaries({name: values(name) for name in FIELDS}).map(
    lambda fields: BlockHeader(BLOCK, **fields)
)


def test_every_field_but_the_id_is_stored() -> None:
    assert {"id", *FIELDS} == set(BlockHeader._fields)


@given(HEADERS)
def test_header_of_any_fields_reads_back_on_another_replica(header: BlockHeader) -> None:
    document = founded()
    document.create_block(header, "x")
    assert document.header(BLOCK) == replica_of(document).header(BLOCK) == header
