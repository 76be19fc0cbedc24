"""Replicas that hold the last blocks of a long context, compared with the kernel's document."""

from __future__ import annotations

from antiphon_kernel.client.replica import Replica
from antiphon_kernel.document.document import Document
from tests.kernel.served import ServedKernel
from tests.waiting import until

ALL = 40
RECENT = 10


def held(document: Document) -> dict[str, str]:
    """The text of each block of a document, in order."""
    return {block: document.text(block) for block in document.block_ids()}


async def texts(served: ServedKernel) -> dict[str, str]:
    """The text of each block of the whole context, as the kernel has it."""
    return held((await served.context()).document)


async def matches(served: ServedKernel, replica: Replica) -> None:
    """Wait until a replica has the last texts of the kernel, and of the others as many as it says.

    All are in their order.
    """
    found = await texts(served)

    def is_same() -> bool:
        here = held(replica.document)
        ends = list(here.items())[-RECENT:] == list(found.items())[-RECENT:]
        ordered = [block for block in found if block in here] == list(here)
        is_all = len(here) + replica.omitted == len(found)
        return ends and ordered and is_all and here.items() <= found.items()

    await until(is_same)
