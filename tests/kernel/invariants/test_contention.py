"""A model edits what somebody is typing into: it hits what it means, or is told what is there."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

from antiphon_kernel.text.lines import split_lines
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from tests.kernel.invariants.alphabet import Alphabet
from tests.kernel.invariants.cases import cases
from tests.kernel.invariants.world import MODEL, World, open_world

KEY_MS = 100
"""Ten keys a second."""
THINKING_MS = 2_000
"""Between what the model reads and what it sends."""
RETRIES = 5


class Typist:
    """Types lines of ten to thirty keys into a text that others change, one after the other."""

    def __init__(self, world: World, block: str, rng: random.Random) -> None:
        self.typed = ""
        self.line = 0
        self._world = world
        self._block = block
        self._rng = rng
        self._left = 0
        self._client = world.clients["amy"]
        self._at = ""

    async def pause(self, ms: int) -> None:
        """Let so much time go by, and type."""
        for _ in range(ms // KEY_MS):
            self._world.clock.ms += KEY_MS
            await self._key()

    async def _key(self) -> None:
        self._client.listen(self._rng, everything=True)
        text = self._client.text(self._block)
        if self._left == 0 or self._at not in text:
            # Somewhere else: at the end of a line that is there.
            lines = split_lines(text)
            number = self._rng.randrange(len(lines))
            offset = len("".join(f"{one}\n" for one in lines[:number])) + len(lines[number])
            key, self._left = "\n", self._rng.randint(10, 30)
        else:
            offset = text.index(self._at) + 1
            key = Alphabet(0).letter(self._rng)
            while key in text:
                key = chr(0xE100 + len(self.typed))
            self._left -= 1
        if key == "\n":
            self._client.splice(self._block, offset, 0, "\n" + (mark := chr(0xE800 + self.line)))
            self._at, self.line = mark, self.line + 1
            self.typed += mark
        else:
            self._client.splice(self._block, offset, 0, key)
            self._at = key
            self.typed += key
        await self._client.send(self._world.context, self._rng)


async def edit_with_retries(
    world: World, block: str, meant: str, pause: Callable[[int], Awaitable[None]], *, based: bool
) -> int:
    """Replace the line that reads `meant`; how often it took."""
    for attempt in range(1, RETRIES + 1):
        read = await world.call(MODEL, "block.read", block_id=block)
        at = split_lines(read["content"]).index(meant)
        operation = {"op": "replace", "start_line": at, "end_line": at + 1, "content": "DONE"}
        params = {"block_id": block, "operations": [operation]}
        if based:
            params["base_version"] = read["version"]
        await pause(THINKING_MS)
        try:
            await world.call(MODEL, "block.edit", **params)
        except AntiphonError as error:
            if error.code is not ErrorCode.STALE_VERSION:
                raise
            continue
        return attempt
    return RETRIES + 1


async def contend(rng: random.Random, *, based: bool) -> tuple[int, bool]:
    """How many attempts it took, and whether the right line was hit and all typing is there."""
    async with open_world(rng) as world:
        await world.add_client("amy", keeps_deleted=False)
        text = "".join(f"line {number}\n" for number in range(6))
        block = (await world.call("bo", "block.create", kind="file", content=text))["block_id"]
        world.clients["amy"].listen(rng, everything=True)
        typist = Typist(world, block, rng)
        await typist.pause(1_000)
        meant = f"line {rng.randrange(6)}"
        attempts = await edit_with_retries(world, block, meant, typist.pause, based=based)
        await typist.pause(1_000)
        await world.settle()
        found = world.oracle.text(block)
        lines = found.split("\n")
        here = [f"line {n}" if f"line {n}" != meant else "DONE" for n in range(6)]
        right = [one for one in lines if one in here] == here and meant not in lines
        return attempts, right and all(key in found for key in typist.typed)


@cases(0.04)
async def test_model_gets_its_edit_in_while_somebody_types_ten_keys_a_second(
    rng: random.Random,
) -> None:
    attempts, right = await contend(rng, based=True)
    assert attempts <= RETRIES
    assert right


async def test_model_without_base_version_hits_other_lines() -> None:
    assert not all([(await contend(random.Random(n), based=False))[1] for n in range(6)])
