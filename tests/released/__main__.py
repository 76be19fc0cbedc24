"""`make released`: files of this version that later ones have to open, made by the program itself.

Once a version is released, its folder is not written again. settings.toml and config.toml in it are
written by hand. `python -m tests.released api` writes the schemas of the tools alone.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from antiphon_kernel.client.address import stated_address
from antiphon_kernel.client.tool_client import ToolClient
from tests.e2e.machine import Machine
from tests.kernel.reference.api_check import API_FILE, api_of, version_here
from tests.kernel.reference.examples import ALL_TOOLS

FOLDER: Final = Path(__file__).parent / version_here().rpartition(".")[0]
STORY: Final = Path(__file__).parent / "story.jsonl"
"""Calls, each with who makes it; the owner if nobody is named."""

SUMS: Final = "SHA256SUMS"
DATABASES: Final = ("journal.db", "auth.db")
FORMATS: Final = ("jsonl", "messages", "replay", "recording")
BLOCKS: Final = [f"default.amy.{number}" for number in (1, 2, 3)] + ["tidy.amy.1", "minutes.amy.2"]
READ: Final[list[tuple[str, dict[str, Any]]]] = [
    *(("block.list", {"context": label}) for label in ("default", "minutes", "tidy")),
    *(("block.get", {"block_id": block}) for block in BLOCKS),
    *(("block.blame", {"block_id": block}) for block in (BLOCKS[0], *BLOCKS[3:])),
    ("block.history", {"block_id": BLOCKS[0]}),
    ("context.list", {"archived": True}),
    *((name, {}) for name in ("message.path", "drift.list", "source.list", "file.list")),
    *((name, {}) for name in ("key.list", "kernel.members", "kernel.invites")),
]
"""Calls whose answers are kept, and are the same in later versions."""

OF_THE_MOMENT: Final = ("sessions", "last_change", "dirty")
"""Fields that say something of the kernel that runs."""


def kept(answer: Any) -> Any:
    """Return what of an answer does not depend on the moment."""
    if isinstance(answer, dict):
        return {key: kept(one) for key, one in answer.items() if key not in OF_THE_MOMENT}
    return [kept(one) for one in answer] if isinstance(answer, list) else answer


def read_all(machine: Machine, *options: str) -> list[Any]:
    """Return the answers to READ by a kernel of the machine."""
    lines = (json.dumps({"id": 0, "tool": tool, "params": params}) for tool, params in READ)
    said = machine.succeed("call", "--jsonl", *options, stdin="\n".join(lines)).stdout
    return [kept(json.loads(line)["result"]) for line in said.splitlines()]


async def tell(data: Path) -> None:
    clients = dict[str | None, ToolClient]()
    for line in STORY.read_text("utf-8").splitlines():
        call = json.loads(line)
        who = call.get("as")
        if who not in clients:
            clients[who] = ToolClient(lambda: stated_address(data), as_name=who)
        await clients[who].call(call["tool"], call["params"])
    for client in clients.values():
        await client.close()


def make(machine: Machine) -> None:
    (machine.project / "README.md").write_text("# A project\n\nWith two lines.\n")
    machine.succeed("call", "session.whoami")
    asyncio.run(tell(machine.data))
    invited = ("invite", "--role", "editor", "--name", "cleo", "--expires", "never", "--json")
    (FOLDER / "invitation.json").write_text(machine.succeed(*invited).stdout)
    for name in FORMATS:
        (FOLDER / f"export.{name}").write_text(machine.succeed("export", "--format", name).stdout)
    (FOLDER / "answers.jsonl").write_text("".join(f"{json.dumps(x)}\n" for x in read_all(machine)))
    machine.succeed("backup", str(machine.data / "backup.db"))
    machine.end_kernel()
    for name in (*DATABASES, "backup.db"):
        packed = gzip.compress((machine.data / name).read_bytes(), mtime=0)
        (FOLDER / f"{name}.gz").write_bytes(packed)


def write_api() -> None:
    api = {"version": version_here(), "tools": api_of(ALL_TOOLS)}
    text = json.dumps(api, separators=(",", ":")) + "\n"
    (FOLDER / API_FILE).write_text(text)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    write_api()
    if sys.argv[1:] != ["api"]:
        with tempfile.TemporaryDirectory(prefix="antiphon-released-") as folder:
            home, project = Path(folder) / "home", Path(folder) / "project"
            home.mkdir()
            project.mkdir()
            os.environ |= {"HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
            machine = Machine(home, project)
            machine.env["LOGNAME"] = "ada"
            try:
                make(machine)
            finally:
                machine.close()
    files = sorted(path for path in FOLDER.iterdir() if path.name != SUMS)
    sums = (f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n" for one in files)
    (FOLDER / SUMS).write_text("".join(sums))


if __name__ == "__main__":
    main()
