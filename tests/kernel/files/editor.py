"""A person who edits files of a project by calling the kernel's tools."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from antiphon_kernel.files.open_file import OpenFile
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.records import Actor


class Editor:
    """One person, and the project that is shared with other programs."""

    def __init__(self, kernel: Kernel, project: Path) -> None:
        self.kernel, self.project = kernel, project
        self._me: Actor = kernel.open_session(kernel.owner, "test")

    async def call(self, tool: str, **params: Any) -> dict[str, Any]:
        return await self.kernel.call(self._me, tool, params)

    async def open(self, path: str) -> OpenFile:
        return await self.kernel.files.open(path)

    def put(self, path: str, data: bytes) -> Path:
        """Write a file as another program did long ago."""
        place = self.project / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        os.utime(place, (1_700_000_000, 1_700_000_000))
        return place

    async def insert(self, path: str, offset: int, text: str) -> None:
        await self.call("block.splice", block_id=f"file:{path}", offset=offset, insert=text)

    async def type(self, path: str, behind: str, text: str) -> None:
        """Insert a text behind another one."""
        found = (await self.call("block.read", block_id=f"file:{path}"))["content"]
        await self.insert(path, found.index(behind) + len(behind), text)

    async def save(self, path: str) -> bytes:
        """Save a file; return what is on disk then."""
        await self.call("file.save", path=path)
        return (self.project / path).read_bytes()
