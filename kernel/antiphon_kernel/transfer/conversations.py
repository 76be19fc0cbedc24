"""The messages of a context as JSON, in the shape of another tool."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any

from antiphon_kernel.contexts import Context
from antiphon_kernel.conversation import (
    CONVERSATION,
    IMPORTED,
    PathMessage,
    PlacedInstructions,
    read_instructions,
)
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.messages import (
    DocumentBlock,
    ImageBlock,
    ImportedMessage,
    MessageShape,
    split_runs,
    without,
    write_run,
    write_system,
)
from antiphon_kernel.time_slice import TimeSlice
from antiphon_kernel.types.frozen_json import JsonObject, thaw


async def export_messages(
    kernel: Kernel, context: Context, shape: MessageShape
) -> AsyncGenerator[str, None]:
    """Yield the messages of a context as one JSON object, a line for each.

    All are as of one moment, and on disk. Blocks that models do not read are left out; so are
    summaries, since what they stand for is there.
    """
    branch = await kernel.trees.branch(context)
    document, slices = context.document, TimeSlice()
    found: list[PathMessage | PlacedInstructions] = [*branch.messages]
    found = sorted([*found, *read_instructions(document)], key=lambda one: one.start)
    said = [ImportedMessage(one.message, None, _kept(document, one.id, IMPORTED)) for one in found]
    about = next(filter(None, (_kept(document, one.id, CONVERSATION) for one in found)), None)
    await context.wait_persisted()
    fields: dict[str, Any] = without(thaw(about or JsonObject()), "system", "messages")
    if said:
        system = write_system(said[0], shape, await _read_files(kernel, said[:1]))
        if system is not None:
            fields["system"] = system
            del said[0]
    lines = [f"{_json(name)}: {_json(value)},\n" for name, value in fields.items()]
    yield "".join(["{", *lines, '"messages": ['])
    before = "\n"
    for run in split_runs(said, shape):
        files = await _read_files(kernel, run)
        for value in write_run(run, shape, files):
            yield before + _json(value)
            before = ",\n"
        await slices.pause()
    yield "\n]}\n"


def _kept(document: Document, block: str, key: str) -> JsonObject:
    """The fields of another tool that a block keeps."""
    kept = document.header(block).metadata.get(key)
    try:
        return JsonObject(kept if isinstance(kept, Mapping) else {})
    except (ValueError, RecursionError):
        return JsonObject()  # people write metadata as they like


async def _read_files(kernel: Kernel, run: Iterable[ImportedMessage]) -> dict[str, bytes]:
    """The bytes of the images and documents in messages, by hash."""
    files: dict[str, bytes] = {}
    for one in run:
        for block in one.message.content:
            if isinstance(block, ImageBlock | DocumentBlock):
                data = await kernel.journal.blob(block.hash)
                files |= {block.hash: data} if data is not None else {}
    return files


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
