"""Kernels on a database of Postgres."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.registry import Registry
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.records import Actor

TEXT = {"role": "user", "kind": "text", "status": "done"}


@asynccontextmanager
async def kernel_on(store: str, folder: Path) -> AsyncIterator[tuple[Kernel, Actor]]:
    """Open a kernel on a database, and a session of its owner."""
    registry = Registry(KERNEL_TOOLS)
    kernel = await Kernel.open(folder, folder.parent, registry=registry, owner="amy", store=store)
    try:
        yield kernel, kernel.open_session(kernel.owner, "test")
    finally:
        await kernel.close()


async def write(kernel: Kernel, actor: Actor, context: str, text: str) -> None:
    """Make a block with a text; it is acknowledged."""
    await kernel.call(actor, "block.create", {**TEXT, "content": text, "context": context})


async def texts(kernel: Kernel, context: str) -> list[str]:
    """Return the texts of a context's blocks."""
    document = (await kernel.context(context)).document
    return [document.text(block) for block in document.block_ids()]
