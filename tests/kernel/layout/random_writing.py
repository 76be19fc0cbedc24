"""Random documents: models that call tools side by side while people change anything."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from antiphon_kernel.layout import BlockAuthor, LayoutBlock
from antiphon_kernel.types.enums import Status
from tests.kernel.layout.written import AMY, BEN, LYRA, OPUS, Writing

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
            *(self._summarise, self._run_command),
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
        match self._rng.randrange(6):
            case 0:
                self.say(prompt, f"Text {len(self.blocks)}", author)
            case 1:
                self.think(prompt, f"Thought {len(self.blocks)}", author)
            case 2 | 3:
                made_in = self._rng.choice(({}, {"round": self.requests + len(self.blocks) // 5}))
                call = self.call(prompt, author, status=Status.RUNNING, metadata=made_in)
                self._running.append(call)
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
