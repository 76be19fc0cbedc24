"""An agent over ACP that does what a script says: one JSON file with the steps of each request.

`python scripted_agent.py SCRIPT`. It writes raw lines, so that wrong ones can be sent, too. What it
is sent is kept in `received.jsonl` beside the script; `sessions` there are those that it knows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SCRIPT = Path(sys.argv[1])
FOLDER = SCRIPT.parent
STEPS: dict[str, Any] = json.loads(SCRIPT.read_text())
SESSIONS = FOLDER / "sessions"
ANSWERS: dict[str, Any] = {
    "initialize": {"protocolVersion": 1, "agentCapabilities": STEPS.get("capabilities", {})},
    "session/prompt": {"stopReason": "end_turn"},
}


class ScriptedAgent:
    """The agent, while it runs."""

    def __init__(self) -> None:
        self.session = ""
        self.answers: dict[int, Any] = {}
        self.is_cancelled = False
        self.asked = 0

    def send(self, **message: Any) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
        self.record("agent", line)
        self.write(line)

    def record(self, sender: str, line: str) -> None:
        """Keep a line of one side, to be checked against the schema."""
        (FOLDER / "lines").mkdir(exist_ok=True)
        with (FOLDER / "lines" / str(os.getpid())).open("a") as lines:
            lines.write(f"{sender} {line}")

    def write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def receive(self) -> dict[str, Any]:
        """Return the next message; what is no request is taken note of."""
        line = sys.stdin.readline()
        if not line:
            sys.exit()
        message: dict[str, Any] = json.loads(line)
        with (FOLDER / "received.jsonl").open("a") as log:
            log.write(line)
        if "method" in message or message["id"] in range(1, self.asked + 1):
            self.record("client", line)  # else the answer to a raw line
        if message.get("method") == "session/cancel":
            self.is_cancelled = True
        elif "method" not in message:
            self.answers[message["id"]] = message.get("result", message.get("error"))
        return message

    def play(self) -> None:
        while True:
            message = self.receive()
            if "id" in message and "method" in message:
                self.answer(message["id"], message["method"], message["params"])

    def answer(self, number: int, method: str, params: dict[str, Any]) -> None:
        self.is_cancelled = False
        steps, result = STEPS.get(method, []), ANSWERS.get(method, {})
        known = SESSIONS.read_text().split() if SESSIONS.exists() else []
        if method == "session/new":
            self.session = f"s{len(known) + 1}"
            SESSIONS.write_text(" ".join([*known, self.session]))
            result = {"sessionId": self.session, **STEPS.get("session", {})}
        elif method in ("session/load", "session/resume"):
            self.session = params["sessionId"]
            if self.session not in known:
                steps = [{"refuse": "There is no such session."}]
        elif method == "session/prompt":
            steps = steps.pop(0) if len(steps) > 1 else steps[0]
        after: list[dict[str, Any]] = []
        for step in steps:
            ((name, value),) = step.items()
            if name == "stop":
                result = {"stopReason": value}
            elif name == "result":
                result = value
            elif name == "after":
                after = value
            elif name == "wrong":  # an answer that the protocol does not have
                self.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": value}) + "\n")
                return
            elif name == "refuse":
                self.send(id=number, error={"code": -32002, "message": value})
                return
            else:
                getattr(self, f"do_{name}")(value)
        self.send(id=number, result=result)
        for step in after:
            ((name, value),) = step.items()
            getattr(self, f"do_{name}")(value)

    # Steps

    def do_update(self, update: dict[str, Any]) -> None:
        params = {"sessionId": self.session, "update": update}
        self.send(method="session/update", params=params)

    def do_say(self, text: str) -> None:
        content = {"type": "text", "text": text}
        self.do_update({"sessionUpdate": "agent_message_chunk", "content": content})

    def do_think(self, text: str) -> None:
        content = {"type": "text", "text": text}
        self.do_update({"sessionUpdate": "agent_thought_chunk", "content": content})

    def do_call(self, call: dict[str, Any]) -> None:
        self.do_update({"sessionUpdate": "tool_call", **call})

    def do_call_update(self, call: dict[str, Any]) -> None:
        self.do_update({"sessionUpdate": "tool_call_update", **call})

    def do_raw(self, text: str) -> None:
        self.write(text.replace("SESSION", self.session))

    def do_line_of(self, count: int) -> None:
        for _ in range(count // 1_000_000):
            self.write("x" * 1_000_000)

    def do_request(self, request: dict[str, Any]) -> None:
        """Ask the client, and wait for the answer, which is said."""
        self.do_ask(request)
        while self.asked not in self.answers:
            self.receive()
        self.do_say(json.dumps(self.answers[self.asked]))

    def do_ask(self, request: dict[str, Any]) -> None:
        made = [one["terminalId"] for one in self.answers.values() if "terminalId" in (one or {})]
        last = {"terminalId": made[-1]} if request["params"].get("terminalId") == "last" else {}
        self.asked += 1
        params = {"sessionId": self.session, **request["params"], **last}
        self.send(id=self.asked, method=request["method"], params=params)

    def do_until_cancelled(self, _: Any) -> None:
        while not self.is_cancelled:
            self.receive()

    def do_until_answered(self, _: Any) -> None:
        while self.asked not in self.answers:
            self.receive()

    def do_until_file(self, name: str) -> None:
        while not (FOLDER / name).exists():
            time.sleep(0.005)

    def do_complain(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    def do_exit(self, code: int) -> None:
        os._exit(code)

    def do_be_silent(self, _: Any) -> None:
        while sys.stdin.readline():
            pass

    def do_start_child(self, _: Any) -> None:
        child = subprocess.Popen(["sleep", "1000"])
        (FOLDER / "child").write_text(str(child.pid))


if __name__ == "__main__":
    with (FOLDER / "pids").open("a") as pids:
        pids.write(f"{os.getpid()}\n")
    ScriptedAgent().play()
