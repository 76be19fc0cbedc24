"""An MCP server on standard input and output that behaves as badly as its arguments say.

`python mcp_server.py [LISTING] [SECONDS]`: LISTING is a kind of list of tools, SECONDS the time
that it takes to start. Every message that it gets is kept in the file that `HEARD` names.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

OBJECT = {"type": "object", "properties": {}}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2},
        "count": {"type": "integer", "default": 3},
        "colour": {"type": "string", "enum": ["red", "blue"]},
        "sure": {"type": "boolean"},
    },
    "required": ["name"],
}
BAD = [
    {"name": "no_schema", "inputSchema": {**OBJECT, "required": ["a", "a"]}},
    {"name": "huge", "description": "x" * 60_000, "inputSchema": OBJECT},
    {"name": "odd", "inputSchema": {"type": "object", "properties": {"a b": {}}}},
]


def plain(name: str, description: str = "A tool.") -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": OBJECT}


class Server:
    def __init__(self, listing: str) -> None:
        self.listing = listing
        self.said = "Say it."
        self.heard = open(os.environ["HEARD"], "a") if "HEARD" in os.environ else None  # noqa: SIM115, PTH123
        self.asking: dict[str, int] = {}

    def tools(self) -> list[dict[str, Any]]:
        if self.listing == "many":
            return [plain(f"tool-{number}") for number in range(300)]
        if self.listing == "bad":
            return [*BAD, plain("good"), plain("good")]
        if self.listing == "invalid":
            return [plain("good"), {"name": "no_object", "inputSchema": {"type": "string"}}]
        if self.listing == "alike":
            return [plain("a.b"), plain("a/b"), plain("a_b"), plain("x" * 80), plain("x" * 81)]
        names = (
            "die die_with_child long_line flood slow ask ask_and_forget ask_much steps pid".split()
        )
        lies = {**plain("lie"), "outputSchema": {**TEXT}}
        slow = {"type": "object", "properties": {"text": {"pattern": "^(a+)+$"}}}
        pattern = {"name": "pattern", "inputSchema": slow, "outputSchema": slow}
        says = {"name": "echo", "description": self.said, "inputSchema": TEXT}
        renamed = {**says, "name": "echo2" if self.said.startswith("Renamed") else "echo"}
        return [renamed, plain("change"), plain("rename"), lies, pattern, *map(plain, names)]

    def send(self, **message: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def hear(self) -> Iterator[dict[str, Any]]:
        for line in sys.stdin:
            if self.heard is not None:
                self.heard.write(line)
                self.heard.flush()
            yield json.loads(line)

    def run(self) -> None:
        for message in self.hear():
            match message:
                case {"method": "initialize", "id": number}:
                    info = {"name": "scripted", "version": "1"}
                    said = {"protocolVersion": "2025-11-25", "serverInfo": info}
                    able = {"tools": {"listChanged": True}}
                    self.send(id=number, result={**said, "capabilities": able})
                case {"method": "tools/list", "id": number}:
                    self.send(id=number, result={"tools": self.tools()})
                case {"method": "tools/call", "id": number, "params": params}:
                    self.call(number, params["name"], params.get("arguments", {}), params)
                case {"method": str(method), "id": number}:
                    error = {"code": -32601, "message": f"no {method}"}
                    self.send(id=number, error=error)
                case {"id": str(question), "result": answer} if question in self.asking:
                    self.text(self.asking.pop(question), json.dumps(answer))

    def text(self, number: int, text: str) -> None:
        self.send(id=number, result={"content": [{"type": "text", "text": text}]})

    def changed(self) -> None:
        self.send(method="notifications/tools/list_changed")

    def call(self, number: int, name: str, arguments: dict[str, Any], params: Any) -> None:
        match name:
            case "echo":
                self.text(number, arguments["text"])
            case "pid":
                self.text(number, str(os.getpid()))
            case "change" | "rename":
                self.said = "Renamed." if name == "rename" else f"{self.said} Really."
                self.changed()
                self.text(number, "The tools have changed.")
            case "die" | "die_with_child":
                if name != "die":  # which holds the pipes
                    subprocess.Popen(["sleep", "600"])
                os.write(2, b"I cannot go on.\n")
                os._exit(3)
            case "long_line":
                sys.stdout.write("x" * 20_000_000)
                sys.stdout.flush()
            case "flood":
                for _ in range(3_000):
                    sys.stdout.write("no JSON at all\n")
                    log = {"level": "info", "data": "y" * 1_000}
                    self.send(method="notifications/message", params=log)
                self.text(number, "z" * 1_000_000)
            case "lie":
                content = {"content": [], "structuredContent": {"text": 5}}
                self.send(id=number, result=content)
            case "pattern":
                self.send(id=number, result={"content": [], "structuredContent": arguments})
            case "steps":
                token = params["_meta"]["progressToken"]
                for step in range(1, 4):
                    said = {"progressToken": token, "progress": step, "message": f"step {step}"}
                    self.send(method="notifications/progress", params={**said, "total": 3})
                    time.sleep(0.3)
                self.text(number, "All steps.")
            case "ask" | "ask_and_forget" | "ask_much":
                form = FORM if name != "ask_much" else {**FORM, "$defs": {"x": ["x" * 200_000]}}
                asked = {"message": "Who are you?", "requestedSchema": form, "mode": "form"}
                question = f"question-{number}"
                self.asking[question] = number
                self.send(id=question, method="elicitation/create", params=asked)
                if name == "ask_and_forget":
                    time.sleep(0.5)
                    gone = {"requestId": question}
                    self.send(method="notifications/cancelled", params=gone)
                    self.text(number, "Never mind.")


if __name__ == "__main__":
    time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 0)
    Server(sys.argv[1] if len(sys.argv) > 1 else "usual").run()
