"""A language server that behaves as its argument says; without one it is a good one."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

MANNER = sys.argv[1] if len(sys.argv) > 1 else ""


def read() -> dict[str, Any]:
    length = 0
    while (line := sys.stdin.buffer.readline()) != b"\r\n":
        if not line:
            sys.exit()
        if line.lower().startswith(b"content-length"):
            length = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(length))


def write(text: str) -> None:
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def send(**message: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message})
    write(f"Content-Length: {len(body.encode())}\r\n\r\n{body}")


def publish(document: dict[str, Any], version: int, message: str) -> None:
    """Find something in the last character of the first line."""
    units = len(message.split("\n")[0].encode("utf-16-le")) // 2 - 1
    at = {"line": 0, "character": units}
    found = {"range": {"start": at, "end": at}, "message": message}
    params = {"uri": document["uri"], "version": version, "diagnostics": [found]}
    send(method="textDocument/publishDiagnostics", params=params)


def answer(message: dict[str, Any]) -> Any:
    match MANNER, message["method"]:
        case _, "initialize":
            return {"capabilities": {}}
        case "mute", "textDocument/hover":
            time.sleep(1000)
        case "dies", "textDocument/hover":
            os._exit(3)
        case "dies once", "textDocument/hover" if not (mark := Path("died")).exists():
            mark.touch()
            os._exit(3)
        case "wrong", "textDocument/hover":
            return 5
        case _, "textDocument/definition":
            time.sleep(0.2 if MANNER == "slow" else 0)
            at = {"line": 4, "character": 4}
            place = {"uri": message["params"]["textDocument"]["uri"], "range": {"start": at}}
            return [place, {**place, "uri": "file:///lib/other.py"}]
        case _, "textDocument/completion":
            return [{"label": word} for word in re.findall(r"\w+", text)]
    return {"contents": text}


text = ""
match MANNER:
    case "fails":
        sys.exit("no configuration")
    case "deaf":
        time.sleep(1000)
    case "talks":
        write("Good morning!\r\n\r\n")
    case "boasts":
        write("Content-Length: 999999999\r\n\r\n")
    case "rambles":
        write("x" * 200_000)
    case "lies":
        write("Content-Length: 3\r\n\r\n{]}")
while True:
    message = read()
    match message:
        case {"method": "textDocument/didOpen", "params": {"textDocument": document}}:
            text = document["text"]
            publish(document, document["version"], text)
        case {
            "method": "textDocument/didChange",
            "params": {"textDocument": document, "contentChanges": [{"text": new}]},
        }:
            publish(document, document["version"] - 1, "late")
            text = new
            publish(document, document["version"], text)
        case {"method": "initialize", "id": number} if MANNER == "refuses":
            send(id=number, error={"code": -32603, "message": "not today"})
        case {"method": _, "id": number}:
            send(id=number, result=answer(message))
