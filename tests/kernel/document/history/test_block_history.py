"""The list of items kept beside the CRDT is the CRDT's own, whatever order updates come in."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pycrdt import Doc, Map, Text

from antiphon_kernel.document.history.block_history import BlockHistory, HistoryChange
from antiphon_kernel.text.splice_diff import apply_script
from antiphon_kernel.types.records import Run, Stamp
from antiphon_kernel.yjs.update import decode_update

BLOCK = "block"
ALPHABET = ["a", "b", "\n", "é", "漢", "😀", "👩‍🚀", "e\u0301", "\r\n", "xyz"]


class Writer:
    """One stock Yjs document with one text, as a client would have it."""

    def __init__(self, client: int, founding: bytes | None) -> None:
        self.doc: Doc[Any] = Doc(client_id=client)
        self.updates: list[bytes] = []
        if founding is None:
            blocks: Map[Any] = self.doc.get("blocks", type=Map)
            blocks[BLOCK] = Map({"kind": "text", "content": Text()})
        else:
            self.doc.apply_update(founding)
        self.doc.observe(lambda event: self.updates.append(event.update))

    @property
    def text(self) -> Text:
        blocks: Map[Any] = self.doc.get("blocks", type=Map)
        content: Text = blocks[BLOCK]["content"]
        return content

    def write(self, rng: random.Random) -> None:
        text = str(self.text)
        at = rng.randint(0, len(text))
        start = len(text[:at].encode())
        if text and rng.random() < 0.4:
            end = len(text[: min(len(text), at + rng.randint(0, 4))].encode())
            if end > start:
                del self.text[start:end]
        else:
            inserted = "".join(rng.choices(ALPHABET, k=rng.randint(1, 3)))
            attributes = {"s": rng.choice("01")} if rng.random() < 0.2 else None
            self.text.insert(start, inserted, attributes)


def change(update: bytes, number: int, unit: int | None = None) -> HistoryChange:
    return HistoryChange(decode_update(update), Stamp("amy", number, 0), unit)


@pytest.mark.parametrize("seed", range(8))
def test_block_history_text_equals_document_for_random_writers(seed: int) -> None:
    rng = random.Random(seed)
    kernel = Writer(1, None)
    founding = kernel.doc.get_update()
    history = BlockHistory(BLOCK)
    history.follow(change(founding, 1))
    clients = [Writer(client, founding) for client in rng.sample(range(2, 2**31), 3)]
    texts = {1: ""}
    for number in range(2, 60):
        writer = rng.choice(clients)
        for _ in range(rng.randint(1, 3)):
            writer.write(rng)
        if rng.random() < 0.3:  # two clients that meet without the kernel
            other = rng.choice(clients)
            other.doc.apply_update(writer.doc.get_update(other.doc.get_state()))
        if rng.random() < 0.6:
            sent = writer.doc.get_update(kernel.doc.get_state())
            if rng.random() < 0.2:
                sent = writer.doc.get_update()  # all over again
            kernel.doc.apply_update(sent)
            history.follow(change(sent, number))
            writer.doc.apply_update(kernel.doc.get_update(writer.doc.get_state()))
        assert history.text() == str(kernel.text)
        assert history.length() == len(str(kernel.text))
        texts[number] = history.text()
    for number, text in texts.items():
        assert history.text(None, number) == text
        before, script = history.edits_since(None, number)
        assert (before, apply_script(before, script)) == (text, history.text())
        ends = [one.offset + one.deleted for one in script]
        assert all(end < one.offset for end, one in zip(ends, script[1:], strict=False))
    assert sum(run.length for run in history.blame()) == history.length()


def test_copied_text_names_those_who_wrote_the_original() -> None:
    writer = Writer(1, None)
    history = BlockHistory(BLOCK)
    writer.text.insert(0, "a😀b漢cd")
    history.follow(change(writer.doc.get_update(), 1))
    by_bo, by_cy = Stamp("bo", 7, 70), Stamp("cy", 8, 80)
    history.inherit(None, [Run(3, by_bo), Run(2, by_cy)])
    before = writer.doc.get_state()
    writer.text.insert(len("a😀".encode()), "X")
    history.follow(change(writer.doc.get_update(before), 2))
    here = [Stamp("amy", 1, 0), Stamp("amy", 2, 0)]
    assert history.blame() == [
        Run(2, by_bo),
        Run(1, here[1]),
        Run(1, by_bo),
        Run(2, by_cy),
        Run(1, here[0]),
    ]
