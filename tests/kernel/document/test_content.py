"""Content of any schema reads back as it was written, and what merging breaks is told."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.document.changes import ContentChange, DocumentChange
from antiphon_kernel.document.content import read_content, read_value
from antiphon_kernel.document.content_writes import (
    plan_append,
    plan_increment,
    plan_insert,
)
from antiphon_kernel.document.counters import as_decimal, as_number, partial_sum, written
from antiphon_kernel.document.schema import (
    CompositeSchema,
    FieldSchema,
    FieldType,
    ListSchema,
    LogSchema,
    MapSchema,
    Section,
    TextSchema,
    decode_schema,
    encode_schema,
)
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.frozen_json import canonical_json
from antiphon_kernel.yjs.update import decode_update
from tests.kernel.document.structured import (
    BLOCK,
    HEADER,
    contents,
    founded,
    grown,
    items,
    merge,
    replica_of,
    schemas,
    set_content,
)

FIELDS = MapSchema(
    fields=(
        FieldSchema(name="title", field_type=FieldType.TEXT),
        FieldSchema(name="votes", field_type=FieldType.COUNTER),
        FieldSchema(name="effort", field_type=FieldType.NUMBER, required=True),
        FieldSchema(name="tags", field_type=FieldType.LIST, max_items=3),
    )
)
NESTED = CompositeSchema(
    sections=(
        Section(name="task", content=FIELDS),
        Section(
            name="inner",
            content=CompositeSchema(
                sections=(
                    Section(name="notes", content=TextSchema()),
                    Section(name="log", content=LogSchema()),
                    Section(name="list", content=ListSchema(max_items=3)),
                )
            ),
        ),
    )
)


def same(one: Any, other: Any) -> bool:
    return canonical_json(one) == canonical_json(other)


@given(schemas)
def test_schema_is_stored_whole(schema: Any) -> None:
    assert decode_schema(encode_schema(schema)) == schema


@given(st.data())
def test_content_reads_back_as_it_was_set_here_and_elsewhere(data: st.DataObject) -> None:
    schema = data.draw(schemas)
    document = founded(schema)
    first = data.draw(contents(schema))
    second = grown(schema, first, data.draw(contents(schema)))
    set_content(document, first)
    set_content(document, second)
    assert same(read_value(document, BLOCK), second)
    replica = replica_of(document)
    assert replica.schema(BLOCK) == schema
    assert read_content(replica, BLOCK) == read_content(document, BLOCK)
    before = document.state_vector()
    set_content(document, read_value(document, BLOCK))
    assert document.state_vector() == before


@given(st.lists(items, max_size=8), st.lists(items, max_size=8))
def test_set_list_keeps_the_items_that_stay(before: list[Any], after: list[Any]) -> None:
    document = founded(ListSchema())
    set_content(document, before)
    with document.transaction("count") as written:
        set_content(document, after)
    new = decode_update(written.update).inserted() if written.update is not None else ()
    made = sum(ids.end - ids.start for ids in new)
    gone = sum(ids.end - ids.start for ids in written.deleted)
    assert same(read_value(document, BLOCK), after)
    assert len(before) - gone + made == len(after)
    if before and same(before, after[: len(before)]):
        assert gone == 0


@given(st.integers(0, 2**32))
def test_counters_hold_the_sum_of_all_increments_however_they_meet(seed: int) -> None:
    rng = random.Random(seed)
    documents = [founded(FIELDS)]
    documents += [replica_of(documents[0]) for _ in range(2)]
    expected = 0
    for _ in range(30):
        document = rng.choice(documents)
        if rng.random() < 0.3:
            merge(document, rng.choice([one for one in documents if one is not document]))
            continue
        amount = rng.choice([1, -1, 10**25, rng.randint(-5, 5)])
        expected += amount
        with document.transaction("count"):
            plan_increment(document, BLOCK, "votes", amount).apply()
    for _ in range(2):
        merge(documents[0], documents[1])
        merge(documents[1], documents[2])
        merge(documents[0], documents[2])
    assert {read_value(document, BLOCK, "votes") for document in documents} == {expected}


def test_text_that_is_set_keeps_what_somebody_types_in_it_meanwhile() -> None:
    one = founded(NESTED)
    set_content(one, "The quick brown fox jumps.\nOver a dog.\n", "task/title")
    other = replica_of(one)
    set_content(one, "The slow brown fox jumps.\nOver a lazy dog.\n", "task/title")
    other.splice(BLOCK, len("The quick brown"), 0, " (red)", "task/title")
    merge(one, other)
    assert one.text(BLOCK, "task/title") == other.text(BLOCK, "task/title")
    assert one.text(BLOCK, "task/title") == ("The slow brown (red) fox jumps.\nOver a lazy dog.\n")


def test_items_pushed_on_two_sides_are_all_there() -> None:
    one = founded(NESTED)
    other = replica_of(one)
    for document, name in ((one, "a"), (other, "b")):
        with document.transaction("push"):
            plan_append(document, BLOCK, "inner/log", name).apply()
            plan_insert(document, BLOCK, "inner/list", None, name).apply()
            plan_insert(document, BLOCK, "task/tags", 0, name).apply()
    merge(one, other)
    for path in ("inner/log", "inner/list", "task/tags"):
        assert sorted(read_value(one, BLOCK, path)) == ["a", "b"]
        assert read_value(one, BLOCK, path) == read_value(other, BLOCK, path)


def test_list_that_two_sides_filled_is_read_and_told_to_be_too_long() -> None:
    one = founded(NESTED)
    set_content(one, [1, 2], "inner/list")
    other = replica_of(one)
    for document in (one, other):
        with document.transaction("push"):
            plan_insert(document, BLOCK, "inner/list", None, document.client_id % 100).apply()
    merge(one, other)
    content = read_content(one, BLOCK, "inner/list")
    assert len(content.value) == 4
    [broken] = content.violations
    assert (broken.path, broken.rule) == ("inner/list", "max_items")
    assert broken in read_content(one, BLOCK).violations
    with pytest.raises(AntiphonError):
        plan_insert(one, BLOCK, "inner/list", None, 5)


def test_content_with_invalid_raw_values_is_read() -> None:
    document = founded(FIELDS)
    fields: Any = document.container(BLOCK)
    with document.transaction("raw"):
        fields["effort"] = "much"
        fields["title"] = 5
        fields["votes"]["1"] = "one"
        fields["votes"]["2"] = "4"
        fields["colour"] = "red"
    content = read_content(document, BLOCK)
    assert content.value == {"title": "", "votes": 4, "effort": "much", "tags": []}
    broken = {(one.path, str(one.rule)) for one in content.violations}
    assert broken == {
        ("effort", "type"),
        ("title", "unreadable"),
        ("votes", "unreadable"),
        ("colour", "unknown_name"),
    }


def test_required_field_that_has_no_value_yet_is_told() -> None:
    [broken] = read_content(founded(FIELDS), BLOCK).violations
    assert (broken.path, broken.rule) == ("effort", "required")


def test_stored_schema_of_a_later_version_is_read_as_a_text() -> None:
    document = founded()
    document.create_block(HEADER, "text")
    raw: Any = document.container(BLOCK)
    assert raw is not None
    assert decode_schema('{"type": "tree"}') is None
    assert document.schema(BLOCK) == TextSchema()


def test_every_change_of_a_content_is_seen_with_its_place() -> None:
    one = founded(NESTED)
    set_content(one, {"task": {"title": "t", "effort": 1}, "inner": {"notes": "n"}})
    other = replica_of(one)
    seen: dict[int, list[DocumentChange]] = {0: [], 1: []}
    one.watch(seen[0].append)
    other.watch(seen[1].append)
    one.text(BLOCK, "inner/notes")
    other.text(BLOCK, "inner/notes")
    before = one.state_vector()
    with one.transaction("all"):
        set_content(one, {"task": {"effort": 2, "tags": [1], "votes": 7}})
        set_content(one, {"log": ["e"], "list": [1]}, "inner")
        one.append(BLOCK, "!", "inner/notes")
        one.splice(BLOCK, 0, 1, "T", "task/title")
    other.apply_update(one.update_since(before))
    for changes in seen.values():
        [change] = changes
        assert change.touched == (BLOCK,)
        assert {text.section for text in change.texts} == {"inner/notes", "task/title"}
        assert set(change.contents) == {
            ContentChange(BLOCK, path)
            for path in ("task/effort", "task/tags", "task/votes", "inner/log", "inner/list")
        }
    [notes] = [text for text in seen[1][0].texts if text.section == "inner/notes"]
    assert [(one.offset, one.deleted, one.inserted) for one in notes.splices] == [(1, 0, "!")]


def test_sections_do_not_hear_of_each_other() -> None:
    document = founded(
        CompositeSchema(
            sections=tuple(Section(name=name, content=TextSchema()) for name in ("a", "b"))
        )
    )
    rng = random.Random(5)
    oracle = {"a": "", "b": ""}
    for _ in range(300):
        name = rng.choice("ab")
        piece = rng.choice(["x", "漢", "😀\n", ""])
        at = rng.randint(0, len(oracle[name]))
        gone = min(rng.randint(0, 2), len(oracle[name]) - at)
        if rng.random() < 0.3:
            document.append(BLOCK, piece, name)
            oracle[name] += piece
        else:
            document.splice(BLOCK, at, gone, piece, name)
            oracle[name] = oracle[name][:at] + piece + oracle[name][at + gone :]
    assert {name: document.text(BLOCK, name) for name in oracle} == oracle
    assert {name: replica_of(document).text(BLOCK, name) for name in oracle} == oracle
    assert document.text(BLOCK) == ""


def seconds(act: Callable[[int], None], size: int) -> float:
    """Processor time of an act of a size; the lesser of two."""
    spent = []
    for _ in range(2):
        start = time.process_time()
        act(size)
        spent.append(time.process_time() - start)
    return min(spent)


def change_three_lines(count: int) -> None:
    rng = random.Random(2)
    lines = [f"line {number} {rng.random()} 漢字\n" for number in range(count)]
    document = founded(FIELDS)
    set_content(document, "".join(lines), "title")
    for at in (10, count // 2, count - 10):
        lines[at] = lines[at].replace("line", "LINE")
    with document.transaction("count") as written:
        set_content(document, "".join(lines), "title")
    assert document.text(BLOCK, "title") == "".join(lines)
    assert sum(ids.end - ids.start for ids in written.deleted) == 3 * len("line")


def change_one_item(count: int) -> None:
    document = founded(ListSchema())
    many: list[Any] = [*range(count)]
    set_content(document, many)
    assert read_value(document, BLOCK) == many
    many[count // 2] = {"changed": True}
    with document.transaction("count") as written:
        set_content(document, many)
    assert sum(ids.end - ids.start for ids in written.deleted) == 1
    assert read_value(replica_of(document), BLOCK) == many


@pytest.mark.parametrize(
    ("act", "size"), [(change_three_lines, 2_000), (change_one_item, 1_000)], ids=["text", "list"]
)
def test_long_content_is_set_read_and_changed_in_proportion_to_its_length(
    act: Callable[[int], None], size: int
) -> None:
    # In proportion it would be 4, with the square of the length 16.
    assert seconds(act, 4 * size) < 9 * seconds(act, size)


@pytest.mark.parametrize(
    "stored", ["٣", "1_000", " 7 ", "7\n", "+7", ".5", "5.", "", "NaN", "Infinity", "0x1", 5, None]
)
def test_partial_sum_of_ambiguous_text_is_none(stored: object) -> None:
    assert partial_sum(stored) is None


@pytest.mark.parametrize("amount", [0.1, -5e-324, 1e299, 10**299, -(10**299), 1e-7, 2.5e21, 7])
def test_partial_sum_of_written_amount_is_equal(amount: int | float) -> None:
    assert partial_sum(written(as_decimal(amount))) == as_decimal(amount)


def test_sum_beyond_floats_is_told_as_a_whole_number() -> None:
    assert as_number(Decimal("1" + "0" * 400 + ".5")) == 10**400
