"""People who type at random into a replica whose connection may be cut."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.replica import Replica
from tests.kernel.served import CuttableProxy, ServedKernel


def through(served: ServedKernel, proxy: CuttableProxy) -> KernelAddress:
    """Return the address of a kernel behind a proxy."""
    return served.locate_tcp().model_copy(update={"http": f"http://127.0.0.1:{proxy.port}"})


class Typist:
    """Types words of its own letters at random places, and takes some of its own back."""

    def __init__(self, replica: Replica, alphabet: str, rng: random.Random, longest: int) -> None:
        """`longest` is how many characters are typed at once."""
        self.replica = replica
        self.alphabet = alphabet
        self.typed: Counter[str] = Counter()
        self.strokes = 0
        self._rng = rng
        self._longest = longest

    async def type(
        self,
        blocks: Sequence[str],
        most: int,
        pause: Callable[[], float],
        end: float = float("inf"),
    ) -> None:
        """Type so many strokes, or until some time; `pause` is how many seconds are in between."""
        rng, document = self._rng, self.replica.document
        while self.strokes < most and time.monotonic() < end:
            block = rng.choice(blocks)
            text = document.text(block)
            own = [at for at, character in enumerate(text) if character in self.alphabet]
            if own and rng.random() < 0.2:
                at = rng.choice(own)
                document.splice(block, at, 1, "")
                self.typed[text[at]] -= 1
            else:
                word = "".join(rng.choices(self.alphabet, k=rng.randint(1, self._longest)))
                document.splice(block, rng.randint(0, len(text)), 0, word)
                self.typed.update(word)
            self.strokes += 1
            if (seconds := pause()) >= 0:
                await asyncio.sleep(seconds)


async def typists_behind(
    served: ServedKernel,
    proxies: Sequence[CuttableProxy],
    alphabets: Sequence[str],
    rng: random.Random,
    *,
    longest: int,
    **options: Any,
) -> list[Typist]:
    """Start a replica behind each proxy, for somebody who types letters of their own."""
    return [
        Typist(
            await served.replica(
                name,
                retry=lambda _: 0.005,
                locate=lambda proxy=proxy: through(served, proxy),
                **options,
            ),
            alphabet,
            random.Random(rng.random()),
            longest,
        )
        for name, proxy, alphabet in zip(("ann", "ben", "cyd"), proxies, alphabets, strict=False)
    ]
