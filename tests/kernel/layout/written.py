"""Blocks for tests, written as words: `U` a message, `A` a text, `C1` a call, `R1` its result.

Or at random.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from antiphon_kernel.layout import BlockAuthor, BlockPosition, Layout, LayoutBlock, LayoutItem
from antiphon_kernel.layout.reading import ModelView
from antiphon_kernel.types.block_metadata import DRIFT, SUMMARY_TYPE
from antiphon_kernel.types.drift import DriftOrigin
from antiphon_kernel.types.enums import BlockKind, PrincipalKind, Role, Status
from antiphon_kernel.types.frozen_json import JsonObject
from antiphon_kernel.types.ids import SYSTEM, SYSTEM_NAME

AMY = BlockAuthor("1" * 32, "amy")
BEN = BlockAuthor("2" * 32, "ben")
OPUS = BlockAuthor("a" * 32, "opus", PrincipalKind.MODEL)
LYRA = BlockAuthor("b" * 32, "lyra", PrincipalKind.MODEL)
KERNEL = BlockAuthor(SYSTEM, SYSTEM_NAME, PrincipalKind.SYSTEM)

CONTEXT = "c" * 32
START = 1_770_603_271_112
"""Creation of the first block; each next one is a millisecond younger."""


class Writing:
    """A document that blocks are added to."""

    def __init__(self) -> None:
        self.blocks: list[LayoutBlock] = []
        self._count = 0

    @classmethod
    def of(cls, blocks: list[LayoutBlock]) -> Writing:
        """Return a document that has these blocks."""
        writing = cls()
        writing.blocks, writing._count = blocks, len(blocks)
        return writing

    def add(self, author: BlockAuthor, role: Role, kind: BlockKind, **fields: Any) -> LayoutBlock:
        """Add a block at the end."""
        self._count += 1
        block = LayoutBlock(
            id=f"{CONTEXT}.{author.id}.{self._count}",
            author=author,
            role=role,
            kind=kind,
            created=START + self._count,
            **{"text": "", "parameters": JsonObject(), **fields},
        )
        self.blocks.append(block)
        return block

    def user(self, text: str = "Hello", author: BlockAuthor = AMY, **fields: Any) -> LayoutBlock:
        return self.add(author, Role.USER, BlockKind.TEXT, text=text, **fields)

    def say(
        self, prompt: LayoutBlock, text: str = "Well", author: BlockAuthor = OPUS, **fields: Any
    ) -> LayoutBlock:
        parent = {"parent": prompt.id, **fields}
        return self.add(author, Role.MODEL, BlockKind.TEXT, text=text, **parent)

    def think(
        self, prompt: LayoutBlock, text: str = "Hm", author: BlockAuthor = OPUS, **fields: Any
    ) -> LayoutBlock:
        parent = {"parent": prompt.id, **fields}
        return self.add(author, Role.MODEL, BlockKind.THINKING, text=text, **parent)

    def call(
        self, prompt: LayoutBlock | None, author: BlockAuthor = OPUS, **fields: Any
    ) -> LayoutBlock:
        said = {
            "text": "ls",
            "tool_name": "shell",
            "parameters": JsonObject({"command": "ls"}),
            "parent": prompt.id if prompt is not None else None,
            **fields,
        }
        role = Role.MODEL if author.kind is PrincipalKind.MODEL else Role.USER
        return self.add(author, role, BlockKind.TOOL_CALL, **said)

    def result(self, call: LayoutBlock, text: str = "a\nb\n", **fields: Any) -> LayoutBlock:
        said = {"parent": call.id, "tool_name": call.tool_name, "text": text, **fields}
        return self.add(call.author, Role.TOOL, BlockKind.TOOL_RESULT, **said)

    def summary(self, parent: LayoutBlock, text: str = "So far", **fields: Any) -> LayoutBlock:
        said = {"parent": parent.id, "metadata": {"type": SUMMARY_TYPE}, **fields}
        return self.add(KERNEL, Role.SYSTEM, BlockKind.TEXT, text=text, **said)

    def drift(
        self, *copied: LayoutBlock, wakes: bool = False, author: BlockAuthor = BEN, **fields: Any
    ) -> LayoutBlock:
        """Add a drift with copies of blocks; return its header."""
        origin = DriftOrigin(
            f"d{self._count}", "f" * 32, "tidy", 12, author.name, (), (), wakes=wakes
        )
        said = {"drift_kind": "push", "metadata": {DRIFT: origin.as_json()}, **fields}
        header = self.add(author, Role.USER, BlockKind.DRIFT, **said)
        copies: dict[str | None, str] = {}
        for one in copied:
            self._count += 1
            number = f"{CONTEXT}.{one.author.id}.{self._count}"
            parent = copies.get(one.parent, header.id)
            metadata = {**one.metadata, DRIFT: origin.id}
            self.blocks.append(one._replace(id=number, parent=parent, metadata=metadata))
            copies[one.id] = number
        return header

    def change(self, block: LayoutBlock, **fields: Any) -> LayoutBlock:
        """Replace fields of a block where it stands."""
        changed = block._replace(**fields)
        self.blocks[self.blocks.index(block)] = changed
        return changed


def written(words: str) -> list[LayoutBlock]:
    """Return the blocks of a stream such as `U C1 C2 R1 R2 A`, with the header `H` left out."""
    writing = Writing()
    prompt: LayoutBlock | None = None
    calls: dict[str, LayoutBlock] = {}
    for word in words.replace("·", " ").split():
        match word[0], prompt:
            case "H", _:
                pass
            case "U", _:
                prompt = writing.user(f"Question {word}")
                calls = {}
            case "A", LayoutBlock():
                writing.say(prompt, f"Answer {word}")
            case "C", LayoutBlock():
                calls[word[1:]] = writing.call(prompt)
            case "R", _:
                writing.result(calls[word[1:]])
            case "S", LayoutBlock():
                writing.summary(prompt)
            case _:
                raise ValueError(word)
    return writing.blocks


def marked(view: ModelView, points: Iterable[int]) -> tuple[BlockPosition, ...]:
    """Return the content blocks at which these items end, each once."""
    ends = (view.ends[point] for point in points)
    return tuple(dict.fromkeys(end for end in ends if end is not None))


def names(layout: Layout) -> str:
    """Return the items of a layout in words: those of `written`, without numbers."""
    return " ".join(_name(item) for item in layout.items)


_NAMES = {
    "turn.header": "H",
    "user.prompt": "U",
    "user.message": "M",
    "user.attachment": "F",
    "assistant.completion": "A",
    "react.notes": "N",
    "react.thinking": "T",
    "react.tool.call": "C",
    "react.tool.result": "R",
    "conv.range.summary": "S",
}


def _name(item: LayoutItem) -> str:
    return _NAMES.get(item.type, item.type)


MODELS = (OPUS, LYRA)


@contextmanager
def noting(seed: int) -> Iterator[None]:
    """Name the seed in the error of a check that fails."""
    try:
        yield
    except Exception as error:
        error.add_note(f"seed {seed}")
        raise


class RandomWriting(Writing):
    """A document that grows by random steps."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng
        self._running: list[LayoutBlock] = []
        """Calls whose results are not all there."""
        self.requests = 0
        """Number of the first round after the last request: no round goes on behind one."""

    def step(self) -> None:
        """Let a model go on, or a person do something."""
        people = (
            *(self._insert, self._edit, self._move, self._exclude, self._delete),
            *(self._summarise, self._run_command, self._wake),
        )
        if not self.blocks or self._rng.random() < 0.1:
            self.user(f"Question {len(self.blocks)}", self._rng.choice((AMY, BEN)))
        elif self._rng.random() < 0.75:
            self.go_on(self._rng.choice(self._prompts() or self.blocks))
        else:
            self._rng.choice(people)()

    def go_on(self, prompt: LayoutBlock) -> None:
        """Write one more block of a model's answer."""
        author = self._rng.choice(MODELS)
        match self._rng.randrange(8):
            case 0:
                self.say(prompt, f"Text {len(self.blocks)}", author)
            case 1:
                self.think(prompt, f"Thought {len(self.blocks)}", author)
            case 2 | 3:
                made_in = self._rng.choice(({}, {"round": self.requests + len(self.blocks) // 5}))
                call = self.call(prompt, author, status=Status.RUNNING, metadata=made_in)
                self._running.append(call)
            case 4:
                self._drift(author)
            case _:
                self.answer(prompt)

    def answer(self, prompt: LayoutBlock) -> None:
        """Write a result of a call that is running; perhaps its last one."""
        standing = [call for call in self._running if call in self.blocks]
        if not standing:
            self.say(prompt, "Nothing runs")
            return
        call = self._rng.choice(standing)
        self.result(call, self._rng.choice(["", "a\nb\n", '{"found": [1, 2]}', "x" * 50]))
        if self._rng.random() < 0.7:
            self._running.remove(call)
            self.change(call, status=Status.DONE)

    def finish(self) -> None:
        """Answer every call that is running."""
        for call in self._running:
            if call in self.blocks:
                self.result(call, "done")
                self.change(call, status=Status.DONE)
        self._running.clear()

    def _prompts(self) -> list[LayoutBlock]:
        return [block for block in self.blocks if block.begins_turn]

    def _any(self) -> LayoutBlock:
        return self._rng.choice(self.blocks)

    def _person(self) -> BlockAuthor:
        return self._rng.choice((AMY, BEN))

    def _insert(self) -> None:
        status = self._rng.choice((Status.DONE, Status.RUNNING))
        self.user("Inserted", self._person(), status=status)
        self._put(self.blocks.pop())

    def _edit(self) -> None:
        text = self._rng.choice(["", " ", "edited", "[1, 2]"])
        self._change(self._any(), text=text)

    def _move(self) -> None:
        block = self._any()
        self.blocks.remove(block)
        self._put(block)

    def _put(self, block: LayoutBlock) -> None:
        self.blocks.insert(self._rng.randint(0, len(self.blocks)), block)

    def _exclude(self) -> None:
        block = self._any()
        self._change(block, excluded=not block.excluded)

    def _delete(self) -> None:
        self.blocks.remove(self._any())

    def _summarise(self) -> None:
        if self._rng.random() < 0.3:
            self.summary(self._any(), f"Summary {len(self.blocks)}")
            self._put(self.blocks.pop())

    def _run_command(self) -> None:
        self.result(self.call(None, self._person()))

    def _wake(self) -> None:
        self._drift(self._person(), wakes=True)

    def _drift(self, author: BlockAuthor, *, wakes: bool = False) -> None:
        copied = self._rng.sample(self.blocks, min(len(self.blocks), self._rng.randint(0, 4)))
        self.drift(*copied, author=author, wakes=wakes)

    def _change(self, block: LayoutBlock, **fields: object) -> None:
        changed = self.change(block, **fields)
        self._running = [changed if call is block else call for call in self._running]


def random_blocks(rng: random.Random, *, people: bool = True) -> RandomWriting:
    """Return a document of some steps; without `people` only models have written behind prompts."""
    writing = RandomWriting(rng)
    for _ in range(rng.randint(0, 40)):
        if people:
            writing.step()
        elif not writing.blocks or rng.random() < 0.15:
            writing.user(f"Question {len(writing.blocks)}")
        else:
            writing.go_on(rng.choice([one for one in writing.blocks if one.begins_turn][-1:]))
    return writing
