"""A random conversation: messages appended, edited, split and deleted, forks, and people's edits.

What must hold after each step: every path is valid, the trees say what the documents say, no two
branches of a tree hold the same messages unless somebody forked or edited them there, and nobody
else's text has changed by a character.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.conversation import Branch, MessagePath
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.maintenance.run_checks import run_checks
from antiphon_kernel.messages import ToolMessage, open_tool_uses, tool_uses
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.kernel.calls import OpenKernel

CASES = int(os.environ.get("ANTIPHON_CASES", "2"))
STEPS = 40
WORDS = ("one", "two 👩‍👩‍👧", "thr\u00e9e e\u0301", "four\nfive", "six")
EXPECTED = (ErrorCode.INVALID_PARAMS, ErrorCode.BLOCK_NOT_FOUND)

Texts = dict[str, str]


class Machine:
    """Random steps in the trees of one kernel."""

    def __init__(self, kernel: Kernel, actors: Sequence[Actor], rng: random.Random) -> None:
        self.kernel = kernel
        self.actors = actors
        self.rng = rng
        self.uses = 0

    async def step(self) -> None:
        """Do something; what is refused must have changed nothing."""
        name = self.rng.choice(
            "append append again edit edit split delete fork person drift".split()
        )
        before = await self.everything()
        try:
            changing = await getattr(self, f"_{name}")()
        except AntiphonError as error:
            if error.code not in EXPECTED:
                raise
            assert await self.everything() == before
            return
        after = await self.everything()
        for block, text in before.items():
            assert block in changing or after[block] == text, (name, block)

    async def everything(self) -> Texts:
        """The text of every block of every context."""
        texts: Texts = {}
        for row in self.kernel.contexts.rows():
            document = (await self.kernel.context(row.id)).document
            texts |= {block: document.text(block) for block in document.block_ids()}
        return texts

    async def branch(self) -> Branch:
        row = self.rng.choice(self.kernel.contexts.rows())
        return await self.kernel.trees.branch(await self.kernel.context(row.id))

    async def call(self, tool: str, **params: Any) -> dict[str, Any]:
        return await self.kernel.call(self.rng.choice(self.actors), tool, params)

    async def message(self) -> tuple[Branch, int]:
        branch = await self.branch()
        if not branch.messages:
            raise AntiphonError(ErrorCode.INVALID_PARAMS, "there is nothing yet")
        return branch, self.rng.randrange(len(branch.messages))

    def messages(self, open_uses: list[str]) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = []
        for _ in range(self.rng.randint(1, 3)):
            if open_uses and self.rng.random() < 0.6:
                answered = {"role": "tool", "tool_call_id": open_uses.pop(0)}
                made.append({**answered, "content": self.rng.choice(WORDS)})
                continue
            blocks: list[dict[str, Any]] = [{"type": "text", "text": self.rng.choice(WORDS)}]
            role = self.rng.choice(("user", "assistant"))
            if role == "assistant" and self.rng.random() < 0.5:
                self.uses += 1
                call = {"type": "tool-use", "id": f"c{self.uses}", "name": "calc"}
                blocks.append({**call, "parameters": {"x": self.uses}})
                open_uses.append(f"c{self.uses}")
            made.append({"role": role, "content": blocks})
        return made

    async def _append(self) -> Sequence[str]:
        branch = await self.branch()
        depth = self.rng.randint(0, len(branch.messages))
        path = [one.message for one in branch.messages[:depth]]
        messages = self.messages([use.id for use in open_tool_uses(path)])
        where = {"parent": branch.messages[depth - 1].id} if depth else {"context": branch.row.id}
        placed = await self.call("message.append", messages=messages, **where)
        again = await self.call("message.append", messages=messages, **where)
        assert (again["created"], again["reused"]) == ([], len(messages))
        assert again["message_id"] == placed["message_id"]
        return ()

    async def _again(self) -> Sequence[str]:
        """Send a whole path: nothing of it is there twice."""
        branch = await self.branch()
        contexts = len(self.kernel.contexts.rows())
        params = {"context": branch.row.id}
        sent = (await self.call("message.path", context=branch.row.id))["messages"]
        messages = [one["message"] for one in sent]
        placed = await self.call("message.append", messages=messages, **params)
        assert (placed["created"], len(self.kernel.contexts.rows())) == ([], contexts)
        return ()

    async def _edit(self) -> Sequence[str]:
        branch, index = await self.message()
        old = branch.messages[index]
        text = {"type": "text", "text": self.rng.choice(WORDS) + self.rng.choice(WORDS)}
        kept = [
            {"type": "tool-use", "id": use.id, "name": use.name, "parameters": {}}
            for use in tool_uses(old.message)
        ]
        in_place = self.rng.random() < 0.3
        behind = len(branch.messages) > index + 1
        await self.call("message.edit", message=old.id, content=[text, *kept], in_place=in_place)
        return () if behind and not in_place else old.blocks

    async def _split(self) -> Sequence[str]:
        branch, index = await self.message()
        block = self.rng.choice(branch.messages[index].blocks)
        length = len(branch.context.document.text(block))
        before = "".join((await self.everything()).values())
        await self.call("message.split", message=block, at=self.rng.randint(1, max(1, length)))
        assert len("".join((await self.everything()).values())) == len(before)
        return (block,)

    async def _delete(self) -> Sequence[str]:
        branch, index = await self.message()
        descendants = self.rng.choice(("cascade", "reparent"))
        named = [branch.messages[index].id]
        await self.call("message.delete", messages=named, descendants=descendants)
        return ()

    async def _fork(self) -> Sequence[str]:
        if len(self.kernel.contexts.rows()) < 12:
            branch = await self.branch()
            await self.call("context.fork", context=branch.row.id)
        return ()

    async def _drift(self) -> Sequence[str]:
        """Bring blocks of one branch into another, their calls and results among them."""
        source, target = await self.branch(), await self.branch()
        document = source.context.document
        blocks = [one for one in document.block_ids() if not document.is_draft(one)]
        chosen = self.rng.sample(blocks, min(len(blocks), 4))
        if not chosen:
            return ()
        ends = {"to": target.row.id, "blocks": chosen, "wake": False}
        pushed = await self.call("drift.push", **ends)
        message = (await self.kernel.trees.branch(target.context)).messages[-1]
        assert "[DRIFT] push from" in repr(message.message)
        assert message.blocks == (pushed["block_id"], *pushed["blocks"])
        return ()

    async def _person(self) -> Sequence[str]:
        """Edit, move, exclude or write blocks, as people do."""
        branch, index = await self.message()
        block = self.rng.choice(branch.messages[index].blocks)
        other = self.rng.choice(branch.messages).id
        match self.rng.randrange(5):
            case 0:
                await self.call("block.splice", block_id=block, offset=0, insert="x")
            case 1:
                await self.call("block.exclude", block_id=block)
            case 2:
                await self.call("block.move", block_id=block, after=other)
            case 3:
                new = {"role": "user", "kind": "text", "content": "said", "after": block}
                status = self.rng.choice(("done", "pending"))
                await self.call("block.create", **new, context=branch.row.id, status=status)
            case _:
                with suppress(AntiphonError):
                    await self.call("block.undo", context=branch.row.id)
                return list(await self.everything())
        return (block,)


async def check_trees(kernel: Kernel) -> None:
    for row in kernel.contexts.rows():
        context = await kernel.context(row.id)
        branch = await kernel.trees.branch(context)
        path = [one.message for one in branch.messages]
        open_tool_uses(path)
        calls = {use.id for message in path for use in tool_uses(message)}
        assert all(one.tool_call_id in calls for one in path if isinstance(one, ToolMessage))
        fresh = MessagePath(context)
        fresh.refresh()
        fresh.close()
        assert fresh.messages == branch.messages
        assert [node.digest for node in branch.nodes[1:]] == [one.digest for one in fresh.messages]
        assert list(branch.nodes[-1].ends.values()).count(branch) == 1
        for node in branch.nodes:
            assert branch in node.branches()
            assert node.children or node.ends


@pytest.mark.sqlite
@pytest.mark.parametrize("seed", range(CASES))
async def test_random_conversation_stays_a_valid_tree(
    open_kernel: OpenKernel, data: Path, seed: int
) -> None:
    kernel = await open_kernel()
    amy = kernel.open_session(kernel.owner, "test")
    bo = kernel.open_session(await kernel.principal("bo"), "test")
    await kernel.members.give_role(bo.principal, AccessRole.OWNER)
    machine = Machine(kernel, (amy, bo), random.Random(seed))
    for _ in range(STEPS):
        await machine.step()
        await check_trees(kernel)
    paths = {
        row.id: [one.digest for one in (await kernel.trees.branch(context)).messages]
        for row in kernel.contexts.rows()
        for context in [await kernel.context(row.id)]
    }
    texts = await machine.everything()
    await kernel.close()
    assert [str(finding) for finding in (await run_checks(data)).all()] == []
    again = await open_kernel()
    machine.kernel = again
    assert await machine.everything() == texts
    for context_id, digests in paths.items():
        branch = await again.trees.branch(await again.context(context_id))
        assert [one.digest for one in branch.messages] == digests
