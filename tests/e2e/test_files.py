"""Two people, models and a formatter write one file of a project.

With `ANTIPHON_LONG` for a minute, and with the small model of this machine where it is installed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sys
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from antiphon_kernel.client.address import read_address
from antiphon_kernel.client.local_replica import ReplicaState
from antiphon_kernel.client.replica import Replica
from antiphon_kernel.client.tool_client import ToolClient
from antiphon_kernel.messages import TextBlock, UserMessage
from antiphon_kernel.providers import TextDelta
from antiphon_kernel.providers.opening import open_provider, packaged_model
from antiphon_kernel.types.errors import AntiphonError
from tests.e2e.machine import Machine
from tests.local_model import is_installed
from tests.waiting import until
from tests.wire.asking import asking, prompt_of

IS_LONG: Final = bool(os.environ.get("ANTIPHON_LONG"))
SECONDS: Final = 60.0 if IS_LONG else 3.0
HAS_SMALL_MODEL: Final = IS_LONG and is_installed()
QUESTION: Final = "Write a very long story about a king, chapter after chapter."
NAME: Final = "written.py"


class SharedFile:
    """The file, everybody who writes it, and the names that have to be in it."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._rng = random.Random(1)
        self._end = time.monotonic() + SECONDS
        self.place = machine.project / NAME
        self.calls = ToolClient(lambda: read_address(machine.data))
        self.block = self.context = ""
        self.wanted: set[str] = set()
        self.formatted = 0

    async def open(self) -> None:
        self.place.write_text("first = [0, 0]\n")
        machine = self._machine
        opened = await asyncio.to_thread(machine.call, machine.data, "file.open", path=NAME)
        self.block, self.context = opened["block_id"], opened["context_id"]

    @asynccontextmanager
    async def replica(self, name: str) -> AsyncIterator[Replica]:
        """Let a person in, until they have nothing unsaved."""
        locate, context = (lambda: read_address(self._machine.data)), self.context
        replica = Replica(locate, context, as_name=name)
        running = asyncio.create_task(replica.run())
        await until(lambda: replica.state is ReplicaState.LIVE, f"{name} is there")
        yield replica
        await replica.saved()
        wanted = (await self.read())["content"]
        await until(lambda: replica.document.text(self.block) == wanted, f"the text of {name}")
        await replica.close()
        await running

    async def read(self) -> dict[str, Any]:
        return await self.calls.call("block.read", {"block_id": self.block})

    def _is_over(self) -> bool:
        return time.monotonic() > self._end

    async def person(self, name: str, replica: Replica) -> None:
        """Type lines, each in two pieces, and now and then delete one."""
        number, document, block = 0, replica.document, self.block
        while not self._is_over():
            number += 1
            mine, text = f"{name}_{number}", document.text(block)
            self.wanted.add(mine)
            starts = [0, *(found.end() for found in re.finditer("\n", text))]
            begun = f"{mine} = [{number},{number}"
            document.splice(block, self._rng.choice(starts), 0, f"{begun}\n")
            await asyncio.sleep(self._rng.uniform(0, 0.1))
            document.splice(block, document.text(block).index(begun) + len(begun), 0, "]")
            await asyncio.sleep(self._rng.uniform(0, 0.1))
            if number % 5 == 0:
                done = re.findall(rf"^({name}_(\d+) = \[\2, \2\]\n)", document.text(block), re.M)
                if done:
                    line, _ = self._rng.choice(done)
                    document.splice(block, document.text(block).index(line), len(line), "")
                    self.wanted.discard(line.split()[0])

    async def model(self) -> None:
        """Append lines, and change earlier ones."""
        aria = ToolClient(lambda: read_address(self._machine.data), as_name="aria", as_kind="model")
        number, about = 0, {"block_id": self.block}
        while not self._is_over():
            number += 1
            read = await aria.call("block.read", about)
            lines = read["content"].splitlines()
            new = {"op": "insert", "line": len(lines), "content": f"aria_{number} = [{number}]"}
            await self._edit(aria, read["version"], new)
            own = [at for at, line in enumerate(lines) if re.fullmatch(r"aria_.*\]", line)]
            if own:
                at = self._rng.choice(own)
                change = {"op": "replace", "start_line": at, "end_line": at + 1}
                change["content"] = f"{lines[at].split()[0]} = [{number},0]"
                await self._edit(aria, read["version"], change)
            await asyncio.sleep(0.05)
        await aria.close()

    async def small_model(self) -> None:
        """Write what the model of this machine says, in lines at places that it does not choose."""
        smol = ToolClient(lambda: read_address(self._machine.data), as_name="smol", as_kind="model")
        prompt = prompt_of(UserMessage((TextBlock(QUESTION),)), tools=(), max_tokens=400)
        number, provider = 0, open_provider(packaged_model())
        while not self._is_over():
            said = ""
            async with aclosing(provider.stream(asking(prompt))) as events:
                async for event in events:
                    said += event.text if isinstance(event, TextDelta) else ""
                    if self._is_over():
                        break
                    if len(said) > 30:
                        number += 1
                        read = await smol.call("file.read", {"path": NAME})
                        change = {
                            "path": NAME,
                            "new_text": f"smol_{number} = {json.dumps(said)}",
                            "start_line": (at := self._rng.randint(0, read["line_count"])),
                            "end_line": at,
                            "base_version": read["version"],
                        }
                        await smol.call("file.edit", change)
                        self.wanted.add(f"smol_{number}")
                        said = ""
        assert number
        await smol.close()

    async def _edit(self, aria: ToolClient, version: int, change: dict[str, Any]) -> None:
        """Change lines as they were in a version, unless somebody else has changed them since."""
        about = {"block_id": self.block, "operations": [change], "base_version": version}
        with suppress(AntiphonError):
            await aria.call("block.edit", about)
            self.wanted |= {*re.findall(r"aria_\d+", change["content"])}

    async def save(self) -> None:
        """Decide about conflicts, save, and let the formatter run."""
        with suppress(AntiphonError):
            await self.calls.call("file.resolve", {"path": NAME, "take": "both"})
        with suppress(AntiphonError):  # there is a new conflict
            await self.calls.call("file.save", {"path": NAME})
        ruff = str(Path(sys.executable).with_name("ruff"))
        command = [ruff, "format", "-q", "--isolated", str(self.place)]
        done = await asyncio.to_thread(self._machine.run_program, command, b"")
        self.formatted += done.returncode == 0  # else a line was not finished

    async def check(self) -> None:
        """Every line is there, and everybody has the same text."""
        self.formatted = 0
        for _ in range(3):
            await self.save()
        compared = await self.calls.call("file.diff", {"path": NAME})
        assert compared["diff"] == "" and compared["conflicts"] == []
        text = (await self.read())["content"]
        assert self.place.read_text() == text
        names = set(re.findall(r"\w+_\d+", text))
        assert names >= self.wanted
        assert self.formatted == 3


async def test_people_a_model_and_a_formatter_lose_no_line_of_a_file(machine: Machine) -> None:
    file = SharedFile(machine)
    await file.open()
    async with file.replica("amy") as amy, file.replica("bo") as bo:
        people = (file.person("amy", amy), file.person("bo", bo))
        models = [file.model(), *([file.small_model()] if HAS_SMALL_MODEL else [])]
        writing = asyncio.gather(*people, *models)
        while not writing.done():
            await file.save()
        await writing
        await amy.saved()
        await bo.saved()
        await file.check()
    await file.calls.close()
