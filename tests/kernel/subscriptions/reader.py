"""A reader that knows a context from nothing but events, and others who write in it."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.subscriptions import BlockEvent, BlockEventKind, Subscription
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.records import Actor


class Copy:
    """Knowledge of a reader, from nothing but events."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.kinds: list[BlockEventKind] = []

    def take(self, event: BlockEvent) -> None:
        self.kinds.append(event.kind)
        block = event.block_id
        if event.from_version is None:
            assert event.header is not None
            self.texts[block] = event.content
        else:
            assert event.from_version == self.versions[block]
            text = self.texts[block]
            for splice in event.splices:
                end = splice.offset + splice.delete_count
                assert end <= len(text)
                text = text[: splice.offset] + splice.insert + text[end:]
            self.texts[block] = text
        self.versions[block] = event.version

    async def follow(self, subscription: Subscription) -> None:
        async for event in subscription:
            self.take(event)


async def subscribed(kernel: Kernel, actor: Actor, **params: Any) -> Subscription:
    made = await kernel.call(actor, "block.subscribe", params)
    return kernel.subscriptions.find(actor, made["subscription"])


async def ended(kernel: Kernel, actor: Actor, subscription: Subscription) -> list[BlockEvent]:
    """Everything that is still to come of it."""
    await kernel.call(actor, "block.unsubscribe", {"subscription": subscription.id})
    return [event async for event in subscription]


async def splice(kernel: Kernel, actor: Actor, block: str, offset: int, insert: str) -> None:
    params = {"block_id": block, "offset": offset, "insert": insert}
    await kernel.call(actor, "block.splice", params)


async def state_of(kernel: Kernel) -> tuple[dict[str, str], dict[str, int]]:
    context = await kernel.context()
    blocks = context.document.block_ids()
    return (
        {block: context.document.text(block) for block in blocks},
        {block: context.blocks.version(block) for block in blocks},
    )


async def scribble(
    kernel: Kernel, actors: list[Actor], blocks: list[str], rng: random.Random, count: int
) -> None:
    """Random work of several people."""
    context = await kernel.context()
    for _ in range(count):
        actor, block = rng.choice(actors), rng.choice(blocks)
        length = len(context.document.text(block))
        match rng.randrange(8):
            case 0:
                new = {"kind": "file", "content": rng.choice(("", "neu 😀\n"))}
                blocks.append((await kernel.call(actor, "block.create", new))["block_id"])
            case 1:
                await kernel.call(actor, "block.collapse", {"block_id": block})
            case 2:
                with suppress(AntiphonError):  # nothing_to_undo
                    await kernel.call(actor, "block.undo", {"block_id": block})
            case 3:
                other = rng.choice(blocks)
                if other != block:
                    await kernel.call(actor, "block.move", {"block_id": block, "after": other})
            case _:
                at = rng.randint(0, length)
                params = {
                    "block_id": block,
                    "offset": at,
                    "delete_count": rng.randint(0, min(3, length - at)),
                    "insert": rng.choice(("", "x", "漢字", "😀\n")),
                }
                await kernel.call(actor, "block.splice", params)
