"""Items that name neighbours which no client ever saw beside each other.

The engine takes them in, and their order then depends on how it has read the document.
"""

from __future__ import annotations

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.records import Actor
from antiphon_kernel.yjs.id_set import IdRange
from antiphon_kernel.yjs.update import ContentKind, ItemId, Struct
from antiphon_kernel.yjs.update_writer import encode_update
from tests.kernel.kernel.calls import Make, OpenKernel
from tests.kernel.validation.peers import Layout

_BO = 2**40


@pytest.fixture
async def block(kernel: Kernel, context: Context, bo: Actor, make: Make) -> str:
    """A text that reads otherwise after a restart, with characters outside the first plane."""
    block = await make("\N{GRINNING FACE}abc")
    *_, a, b, c, _ = Layout(context, block).items[""]
    for client, origin, right, text in ((_BO, b, None, "bo"), (_BO + 1, a, c, "\N{GRINNING FACE}")):
        item = Struct(client, 0, 2, ContentKind.STRING, origin, right, content=text)
        await context.remote.apply(bo, encode_update([item], ()), "client")
    gone = Struct(_BO - 1, 0, 1, ContentKind.STRING, ItemId(_BO, 1), content="x")
    await context.remote.apply(bo, encode_update([gone], ()), "client")
    await context.remote.apply(bo, encode_update([], (IdRange(_BO - 1, 0, 1),)), "client")
    return block


@pytest.fixture
async def reopened(kernel: Kernel, block: str, open_kernel: OpenKernel) -> Kernel:
    context = await kernel.context()
    before = context.document.text(block)
    await kernel.close()
    again = await open_kernel()
    after = (await again.context()).document.text(block)
    assert after != before and sorted(after) == sorted(before)
    return again


async def test_blame_of_a_text_with_made_up_neighbours_names_who_wrote_it(
    reopened: Kernel, block: str
) -> None:
    amy = reopened.open_session(reopened.owner, "test")
    text = (await reopened.context()).document.text(block)
    blamed = await reopened.call(amy, "block.blame", {"block_id": block})
    runs = [(one["username"], text[one["start"] : one["end"]]) for one in blamed["runs"]]
    assert "".join(part for _, part in runs) == text
    assert ("bo", "bo") in runs


async def test_export_of_a_text_with_made_up_neighbours_is_whole(
    reopened: Kernel, block: str
) -> None:
    amy = reopened.open_session(reopened.owner, "test")
    text = (await reopened.call(amy, "context.export", {}))["text"]
    made = await reopened.call(amy, "context.import", {"text": text, "label": "copy"})
    assert made["blocks"] == 1


async def test_undo_in_a_text_with_made_up_neighbours_takes_back_what_was_written(
    reopened: Kernel, block: str
) -> None:
    bo = reopened.open_session(await reopened.principal("bo"), "test")
    await reopened.call(bo, "block.undo", {})
    assert (await reopened.context()).document.text(block) == "\N{GRINNING FACE}abc"
