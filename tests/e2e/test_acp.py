"""`antiphon acp` as an editor starts it: nothing but lines of the protocol comes out of it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.acp_schema import AGENT, CLIENT, AcpLines
from tests.e2e.machine import ANTIPHON, Machine
from tests.fork_server import start_process


def test_kernel_is_started_for_the_folder_that_the_editor_names(machine: Machine) -> None:
    folder = machine.project / "src"
    folder.mkdir()
    config = machine.home / "config" / "antiphon" / "config.toml"
    agent = '[agents.bot]\ncommand = ["/bin/false"]'
    config.write_text(f"[discovery]\nenvironment = false\nlocal_ports = []\n{agent}\n", "utf-8")
    with start_process(
        [ANTIPHON, "acp"],
        cwd=machine.home,
        env=machine.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        lines = AcpLines()

        def ask(number: int, method: str, **params: Any) -> dict[str, Any]:
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            lines.check(CLIENT, message)
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            while True:
                said: dict[str, Any] = json.loads(process.stdout.readline())
                lines.check(AGENT, said)
                if "id" in said:
                    return said

        about = ask(1, "initialize", protocolVersion=1)["result"]
        assert about["agentInfo"]["name"] == "antiphon"
        made = ask(2, "session/new", cwd=str(folder), mcpServers=[])["result"]
        (model,) = made["configOptions"]
        assert (model["id"], model["currentValue"]) == ("model", "bot")  # there is no other
        (first, _) = ask(3, "session/list")["result"]["sessions"]
        assert (first["title"], first["cwd"]) == ("acp-1", str(machine.project))
        rest, complaints = process.communicate()
    assert (process.returncode, rest) == (0, "")
    assert complaints == f"antiphon: started a kernel for {machine.project}\n"


def test_without_an_editor_it_says_what_it_is_for(machine: Machine) -> None:
    terminal = machine.terminal("acp")
    terminal.wait_for("this is for editors to start")
    assert terminal.wait_for_end() == 2
    done = machine.run_program(["/bin/sh", "-c", f"exec {ANTIPHON} acp < /dev/null"], b"")
    assert (done.returncode, done.stderr[:22]) == (2, "antiphon: this is for ")
