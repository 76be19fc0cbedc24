"""Writing blocks through the kernel's tools so that none is ever left open."""

from __future__ import annotations

import logging
from typing import Any, Literal

from antiphon_kernel.contexts import Context
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.tools.edit import append, append_streamed
from antiphon_kernel.types.enums import BlockKind, Status
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.json_validation import replace_half_characters
from antiphon_kernel.types.records import Actor
from antiphon_kernel.uninterruptible import run_uninterrupted
from antiphon_kernel.validation import check_value, reject_long_text

_log = logging.getLogger(__name__)


class BlockWriter:
    """Creates, streams and finishes blocks of one actor in one context.

    Whatever is cancelled meanwhile, a block that was created is known here until it is finished.
    """

    def __init__(self, kernel: Kernel, context: Context, actor: Actor) -> None:
        self.kernel = kernel
        self.context = context
        self.actor = actor
        self._open: list[str] = []

    async def create(
        self,
        kind: BlockKind,
        parent: str | None,
        content: str = "",
        *,
        status: Literal["pending"] | None = None,
        after: str | None = None,
        **fields: object,
    ) -> str:
        """A new block; `fields` go into its header.

        Args:
            status: pending, although there is something in it.
            after: block that it stands behind; the end of the context if absent.
        """
        params = {
            "context": self.context.id,
            "kind": kind,
            "content": content,
            "metadata": fields,
        }
        if status is not None:
            params["status"] = status
        if after is not None:
            params["after"] = after
        if parent is not None:
            params["parent_id"] = parent
        return await run_uninterrupted(self._create(params))

    def adopt(self, block: str) -> None:
        """Take over a block that was left open."""
        self._open.append(block)
        self.kernel.writers.writes(self.actor, block)

    async def begin(self, block: str) -> None:
        """A block is being worked on, before there is anything in it."""
        params = {"block_id": block, "status": Status.RUNNING}
        await self.kernel.call(self.actor, "block.status", params)

    async def append(self, block: str, text: str) -> None:
        """Stream text to the end of a block."""
        await append_streamed(self.kernel.start_call(self.actor, append), block, text)

    def describe(self, block: str, *, text: str | None = None, **fields: Any) -> None:
        """Write header fields of a block; what is said of `metadata` is added to what is there.

        Args:
            text: the text that the block has from now on; the same if absent.

        Raises:
            AntiphonError: invalid_params or too_large, before anything is written.
        """
        context = self.context
        context.appends.flush(block)
        document = context.document
        if "metadata" in fields:
            fields["metadata"] = document.header(block).metadata | fields["metadata"]
        for name, value in fields.items():
            check_value(name, value, context.limits)
        if text is not None:
            text = replace_half_characters(text)
            reject_long_text(context.limits, len(text))

        def change() -> None:
            document.set_fields(block, **fields)
            if text is not None and document.text(block) != text:
                document.splice(block, 0, document.length(block), text)

        context.write(self.actor, "status", change, blocks=[block], undo=None)

    async def finish(self, block: str, status: Status, **fields: object) -> None:
        """End a block; one that somebody else has ended already stays as it is."""
        if block in self._open:
            await run_uninterrupted(self._finish(block, status, fields))

    async def finish_all(self, status: Status, **fields: object) -> None:
        """End every block that is open, the latest first, except calls that wait for a decision."""
        for block in reversed(tuple(self._open)):
            if not self.kernel.tool_permissions.is_undecided(block):
                await self.finish(block, status, **fields)

    async def _create(self, params: dict[str, Any]) -> str:
        created = await self.kernel.call(self.actor, "block.create", params)
        block = str(created["block_id"])
        self._open.append(block)
        return block

    async def _finish(self, block: str, status: Status, fields: dict[str, object]) -> None:
        params = {"block_id": block, "status": status, **fields}
        try:
            await self.kernel.call(self.actor, "block.status", params)
        except AntiphonError as error:
            if error.code is not ErrorCode.INVALID_TRANSITION:
                raise
            _log.info("block %s was ended by somebody else: %s", block, error)
        self._open.remove(block)
