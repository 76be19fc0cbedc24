"""An append behind a known end is the same as one that looks for the end, without looking."""

from __future__ import annotations

import random

import pycrdt
import pytest

from antiphon_kernel.document.document import Document
from tests.kernel.document.structured import HEADER

BLOCKS = ("c.p.1", "c.p.2", "c.p.3")
WORDS = ("a", "bc ", "é", "漢字", "😀", "\n", "a longer word ", "x" * 3_000)


def filled(made: Document) -> Document:
    for block in BLOCKS:
        made.create_block(HEADER._replace(id=block))
    return made


class Searching(Document):
    """A document that looks for the end of a text at every append."""

    def append(self, block: str, text: str, section: str | None = None) -> None:
        self._tails.clear()
        super().append(block, text, section)


def write(chance: random.Random, one: Document, other: Document, remote: Document) -> None:
    """Do the same to two documents, or take in what a third one writes."""
    block, action = chance.choice(BLOCKS), chance.random()
    length = len(one.text(block)) if action > 0.8 else 0
    word = chance.choice(WORDS)
    if action <= 0.8:
        for each in (one, other):
            each.append(block, word)
    elif action <= 0.9:
        offset = chance.randrange(length + 1)
        deleted = min(chance.randrange(3), length - offset)
        for each in (one, other):
            each.splice(block, offset, deleted, word)
    elif action <= 0.94:
        second, at = chance.choice((word, "", "b")), chance.randrange(length + 1)
        parts = chance.sample(range(4), 3)
        for each in (one, other):
            with each.transaction("several"):
                for part in parts:
                    if part == 0:
                        each.append(block, second)
                    elif part == 1:
                        each.append(BLOCKS[0], "!")
                    elif part == 2:
                        each.splice(block, len(each.text(block)), 0, word)
                    else:
                        each.splice(block, at, min(2, length - at), second)
    else:
        remote.apply_update(one.update_since(remote.state_vector()))
        size = len(remote.text(block))
        at = chance.choice((0, size, size // 2))
        remote.splice(block, at, min(chance.randrange(3), size - at), "remote")
        update = remote.update_since(one.state_vector())
        for each in (one, other):
            each.apply_update(update)


@pytest.mark.parametrize("seed", range(20))
def test_append_behind_known_end_writes_the_same_items(seed: int) -> None:
    chance = random.Random(seed)
    one, other, remote = filled(Document(7)), filled(Searching(7)), Document(9)
    for _ in range(200):
        write(chance, one, other, remote)
    assert one.update_since() == other.update_since()
    for block in BLOCKS:
        assert one.text(block) == other.text(block) == str(one.container(block))


def test_append_to_text_of_many_items_does_not_look_for_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []
    insert = pycrdt.Text.insert

    def counted(self: pycrdt.Text, index: int, *more: object) -> None:
        looked.append(index)
        insert(self, index, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(pycrdt.Text, "insert", counted)
    written = filled(Document(7))
    for _ in range(500):
        for block in BLOCKS:
            written.append(block, "word ")
    assert len(looked) == len(BLOCKS)
    assert written.text(BLOCKS[0]) == "word " * 500
