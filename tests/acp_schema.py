"""Lines of the Agent Client Protocol, checked against its published JSON schema by their method.

Run as a program, it stands between a client and an agent and keeps what both say:
`python acp_schema.py FOLDER COMMAND ARGUMENT...`; a file for each process, named by its id.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

AGENT: Final = "agent"
CLIENT: Final = "client"
_OTHER: Final = {AGENT: CLIENT, CLIENT: AGENT}
_SCHEMA: Final = "@agentclientprotocol/sdk/schema/v1/schema.json"


class AcpLines:
    """One connection: what each side has said, every line of it as the schema wants it."""

    def __init__(self) -> None:
        self.checked: list[tuple[str, str]] = []
        """Sides and methods, in order; of a response, the method that it answers."""
        self._open: dict[tuple[str, str], str] = {}
        """Methods of requests without a response, by the side that asked and the id."""

    def check(self, sender: str, message: dict[str, Any]) -> None:
        """Check one message of a side.

        Raises:
            AssertionError: saying what is wrong with it.
        """
        assert message.get("jsonrpc") == "2.0", message
        number = json.dumps(message.get("id"))
        if (method := message.get("method")) is not None:
            assert not message.keys() & {"result", "error"}, message
            if "id" in message:
                _check(message["id"], {"$ref": "#/$defs/RequestId"}, message)
                assert (sender, number) not in self._open, f"two requests with an id: {message}"
                self._open[sender, number] = method
            kind = "Request" if "id" in message else "Notification"
            self._check_part(_OTHER[sender], method, kind, message.get("params"), message)
        else:
            assert len(message.keys() & {"result", "error"}) == 1, message
            asked = self._open.pop((_OTHER[sender], number), None)
            assert asked is not None, f"no request has this id: {message}"
            method = asked
            if "error" in message:
                _check(message["error"], {"$ref": "#/$defs/Error"}, message)
            else:
                self._check_part(sender, method, "Response", message["result"], message)
        self.checked.append((sender, method))

    @classmethod
    def recorded(cls, path: Path, is_faulty: bool = False) -> AcpLines:
        """Check what was recorded of an agent's process; a line that it died in does not count.

        Args:
            is_faulty: whether the agent says wrong things on purpose: those are not looked at.
        """
        lines = cls()
        for line in path.read_text("utf-8").split("\n")[:-1]:
            sender, _, said = line.partition(" ")
            message = json.loads(said)
            if not is_faulty or (sender == CLIENT and "method" in message):
                lines.check(sender, message)
        return lines

    def _check_part(self, side: str, method: str, kind: str, part: Any, message: Any) -> None:
        if method.startswith("_") or not schema():
            return  # an extension
        name = _definitions().get((side, method, kind)) or _definitions().get(
            ("protocol", method, kind)
        )
        assert name is not None, f"the schema has no {kind} {method} for the {side}: {message}"
        _check(part, {"$ref": f"#/$defs/{name}"}, message)


@cache
def schema() -> dict[str, Any]:
    """Return the schema; empty if it is not installed, and nothing is checked then."""
    from tests.programs import FOLDER

    path = FOLDER.parent / _SCHEMA
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


@cache
def _definitions() -> dict[tuple[str, str, str], str]:
    """Return names of definitions by the side that handles the method, the method and the kind."""
    kinds = ("Request", "Response", "Notification")
    return {
        (one["x-side"], one["x-method"], next(kind for kind in kinds if name.endswith(kind))): name
        for name, one in schema()["$defs"].items()
        if "x-method" in one
    }


@cache
def _validator(reference: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator({"$defs": schema()["$defs"], "$ref": reference})


def _check(part: Any, about: dict[str, str], message: Any) -> None:
    if not schema():
        return
    problems = [one.message for one in _validator(about["$ref"]).iter_errors(part)]
    assert not problems, f"{problems} in {json.dumps(message)[:2000]}"


def _record(folder: str, command: list[str]) -> int:
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert agent.stdin is not None and agent.stdout is not None
    lock = threading.Lock()
    with (Path(folder) / str(agent.pid)).open("wb", buffering=0) as kept:

        def pass_on(sender: bytes, source: IO[bytes], sink: IO[bytes]) -> None:
            for line in source:
                with lock:
                    kept.write(sender + b" " + line)
                sink.write(line)
                sink.flush()
            sink.close()

        said = (b"client", sys.stdin.buffer, agent.stdin)
        threading.Thread(target=pass_on, args=said, daemon=True).start()
        pass_on(b"agent", agent.stdout, sys.stdout.buffer)
        return agent.wait()


if __name__ == "__main__":
    os._exit(_record(sys.argv[1], sys.argv[2:]) & 0xFF)  # a thread still reads
