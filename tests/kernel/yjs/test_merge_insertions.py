"""Typing that arrives in many updates is one update that says the same."""

from __future__ import annotations

import random
from typing import Any

import pycrdt
import pytest

from antiphon_kernel.yjs.merge import MergedUpdate, merge_insertions
from antiphon_kernel.yjs.update import decode_update

WORDS = ("a", "bc ", "é", "漢字", "😀", "\n", "a longer word ")


def typed(
    chance: random.Random, doc: pycrdt.Doc[Any], text: pycrdt.Text, steps: int
) -> list[bytes]:
    """Updates of somebody who mostly types on, and sometimes goes elsewhere or deletes."""
    updates: list[bytes] = []
    subscription = doc.observe(lambda event: updates.append(event.update))
    at = len(text)
    for _ in range(steps):
        action = chance.random()
        size = len(text)
        if action < 0.05:
            before = str(text)
            at = len(before[: chance.randrange(len(before) + 1)].encode())
        if action > 0.95 and size:
            last = len(str(text)[-1].encode())
            del text[size - last : size]
            at = min(at, len(text))
        else:
            word = chance.choice(WORDS)
            text.insert(at, word)
            at += len(word.encode())
    doc.unobserve(subscription)
    return updates


@pytest.mark.parametrize("seed", range(5))
def test_merge_insertions_yields_equal_document_in_fewer_updates(seed: int) -> None:
    chance = random.Random(seed)
    doc: pycrdt.Doc[Any] = pycrdt.Doc(client_id=chance.randrange(1, 2**53))
    text = doc.get("text", type=pycrdt.Text)
    text += chance.choice(["", "hello 😀", "x" * 40])
    start = doc.get_update()
    updates = typed(chance, doc, text, chance.randrange(1, 80))

    replica: pycrdt.Doc[Any] = pycrdt.Doc()
    replica.apply_update(start)
    seen = replica.get("text", type=pycrdt.Text)
    one_by_one: pycrdt.Doc[Any] = pycrdt.Doc()
    one_by_one.apply_update(start)
    at = applied = 0
    while at < len(updates):
        joined, count, decoded = merge_insertions(updates[at:])
        assert decoded in (None, decode_update(joined))
        assert 1 <= count <= len(updates) - at
        if count == 1:
            assert joined == updates[at]
        else:
            places = len(decode_update(joined).structs)
            assert places == 1 or 4 <= places <= count
        for update in updates[at : at + count]:
            one_by_one.apply_update(update)
        replica.apply_update(joined)
        assert str(seen) == str(one_by_one.get("text", type=pycrdt.Text))
        assert replica.get_state() == one_by_one.get_state()
        at += count
        applied += 1
    assert str(seen) == str(text)
    assert replica.get_update() == one_by_one.get_update()


def typed_at(letters: str, step: int, before: str = "[]") -> tuple[bytes, list[bytes]]:
    """A document, and the updates that put letters into it, each so far behind the one before."""
    doc: pycrdt.Doc[Any] = pycrdt.Doc(client_id=7)
    text = doc.get("text", type=pycrdt.Text)
    text += before
    start = doc.get_update()
    updates: list[bytes] = []
    doc.observe(lambda event: updates.append(event.update))
    for number, letter in enumerate(letters):
        text.insert(len(before) // 2 + step * number, letter)
    return start, updates


def test_typing_on_at_one_place_is_one_update() -> None:
    _, updates = typed_at("thirty letters in the middle.", 1)
    joined, count, _ = merge_insertions(updates)
    assert count == len(updates) == 29
    [struct] = decode_update(joined).structs
    assert struct.content == "thirty letters in the middle."


def test_merge_insertions_joins_many_places_into_one_update() -> None:
    start, updates = typed_at("abcdefghij", 0)
    joined, count, _ = merge_insertions(updates)
    assert count == len(updates) == len(decode_update(joined).structs)
    replica: pycrdt.Doc[Any] = pycrdt.Doc()
    replica.apply_update(start)
    replica.apply_update(joined)
    assert str(replica.get("text", type=pycrdt.Text)) == "[jihgfedcba]"


def test_merge_insertions_keeps_few_places_apart() -> None:
    _, updates = typed_at("abc", 0)
    assert merge_insertions(updates) == MergedUpdate(updates[0])


def test_merge_insertions_of_many_places_ends_before_gap() -> None:
    _, updates = typed_at("abcdefghijklm", 0)
    assert merge_insertions([*updates[:9], *updates[10:]])[1] == 9


@pytest.mark.parametrize("wrong", [b"", b"\x00", b"\x00\x00", b"\x01\x01", b"\xff" * 9])
def test_merge_insertions_leaves_other_updates_unchanged(wrong: bytes) -> None:
    _, updates = typed_at("ab", 1, "")
    assert merge_insertions([wrong, *updates]) == MergedUpdate(wrong)
    assert merge_insertions([updates[0], wrong, updates[1]]) == MergedUpdate(updates[0])
    assert merge_insertions([updates[0], updates[1] + wrong])[1] == (1 if wrong else 2)
    for end in range(len(updates[1])):
        assert merge_insertions([updates[0], updates[1][:end]])[1] == 1


def test_gap_ends_a_run() -> None:
    _, updates = typed_at("abcd", 1, "")
    assert merge_insertions([updates[0], updates[1], updates[3]])[1] == 2
    assert merge_insertions([updates[0], updates[2]])[1] == 1
