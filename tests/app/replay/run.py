"""A run of two people and two models, as the lines of its replay."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path

from antiphon_kernel.document.document import Document
from antiphon_kernel.transfer import replay_lines
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.replay import (
    ReplayChange,
    ReplayPresence,
    read_replay_line,
    write_replay_line,
)
from antiphon_kernel.types.roles import AccessRole
from tests.app.opened import World, Writer, world
from tests.waiting import until

APART_MS = 200
"""Time between two changes."""


async def write(here: World, actor: Actor, text: str, context: str) -> None:
    """Type a message and send it."""
    kernel = here.kernel
    draft = {"kind": "text", "role": "user", "context": context, "status": "pending"}
    block = str((await kernel.call(actor, "block.create", draft))["block_id"])
    for at, sign in enumerate(text):
        splice = {"block_id": block, "offset": at, "delete_count": 0, "insert": sign}
        await kernel.call(actor, "block.splice", splice)
    await kernel.call(actor, "block.status", {"block_id": block, "status": "done"})


def block_of(document: Document, text: str) -> str:
    """Return the block with this text; empty if there is none."""
    return next((one for one in document.block_ids() if document.text(one) == text), "")


async def answer(here: World, model: Writer, words: Sequence[str], context: str) -> str:
    """Let a model write, each word in a change of its own; returns its block."""
    document = (await here.kernel.context(context)).document
    await until(lambda: model.rounds == 1, "a model is asked")
    for at, word in enumerate(words, 1):
        model.write(word)
        await until(partial(block_of, document, "".join(words[:at])))
    return block_of(document, "".join(words))


async def play(here: World, bran: Writer) -> None:
    """Two people ask two models, who call tools; one undoes; a fork goes on."""
    ben = here.kernel.open_session(await here.kernel.principal("ben"), "test")
    await here.kernel.members.give_role(ben.principal, AccessRole.EDITOR)
    await write(here, here.me, "@aria a tale?", "default")
    tale = await answer(here, here.aria, ("Once ", "upon ", "a *time*.\n"), "default")
    here.aria.run("echo a fox")
    await until(lambda: len(here.aria.prompts) == 2, "the tool has answered")
    await answer(here, here.aria, ("A fox ", "came.\n", "```\nfox()\n```\n"), "default")
    await write(here, ben, "@bran and yours?", "default")
    await answer(here, bran, ("There ", "was ", "a 漢 crow.\n"), "default")
    for text in ("Twice", "Thrice"):
        edit = {"block_id": tale, "offset": 0, "delete_count": 4, "insert": text}
        await here.kernel.call(ben, "block.splice", edit)
    await here.kernel.call(ben, "block.undo", {"context": "default"})
    bran.end()
    here.aria.end()
    await here.turns.wait_idle()
    await here.call("context.fork", context="default", label="fork")
    await write(here, here.me, "@bran go on.", "fork")
    await answer(here, bran, ("It ", "flew.\n"), "fork")
    bran.end()
    await here.turns.wait_idle()


@contextlib.asynccontextmanager
async def played(folder: Path) -> AsyncIterator[World]:
    """A kernel in which all of that has been played."""
    bran = Writer()
    async with world(folder, others={"bran": bran}) as here:
        await play(here, bran)
        yield here


async def lines_of(here: World, context: str) -> list[bytes]:
    """Return the lines of a context's replay, with times that are the same in every run."""
    found = await here.kernel.context(context)
    text = "".join([piece async for piece in replay_lines(here.kernel, found)])
    lines, at = list[bytes](), 0
    for number, line in enumerate(text.encode().splitlines(), 1):
        one = read_replay_line(number, line)
        if isinstance(one, ReplayChange | ReplayPresence):
            one, at = one.model_copy(update={"at": at}), at + APART_MS
        lines.append(write_replay_line(one).encode())
    return lines
