"""A flood of connections that say little: the libraries of a real client are not imported."""

from __future__ import annotations

import contextlib
import json
import select
import socket as sockets
import sys
from collections import Counter

DRIP = b"POST /call/session.whoami HTTP/1.1\r\nHost: localhost\r\nX: "
HELD = 200


def open_one(port: int, path: str, number: int) -> sockets.socket:
    """Every second connection goes to the unix socket, until that many are held."""
    sock = sockets.socket(sockets.AF_UNIX if number % 2 and number < HELD else sockets.AF_INET)
    sock.settimeout(1.0)
    sock.connect(path if sock.family == sockets.AF_UNIX else ("127.0.0.1", port))
    return sock


def flood(port: int, path: str) -> Counter[str]:
    """How often each thing was done until standard input was closed."""
    done: Counter[str] = Counter()
    held: list[sockets.socket] = []
    number = 0
    while not select.select([sys.stdin], [], [], 0.002)[0]:
        number += 1
        with contextlib.suppress(OSError):
            sock = open_one(port, path, number)
            match number % 4:
                case 0:
                    done["silent"] += 1
                case 1:
                    sock.sendall(DRIP)
                    done["begun"] += 1
                case 2:
                    sock.shutdown(sockets.SHUT_WR)
                    done["half open"] += 1
                case _:
                    sock.sendall(b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n")
                    done["refused"] += 1
            held.append(sock)
        for slow in held[:: max(1, len(held) // 8)]:
            with contextlib.suppress(OSError):
                slow.send(b"x")
                done["dripped"] += 1
        while len(held) > HELD:
            held.pop(0).close()
    for sock in held:
        sock.close()
    return done


def main() -> None:
    """Open connections until standard input is closed: python flood.py PORT SOCKET"""
    port, path = sys.argv[1:]
    sys.stdout.write(json.dumps(flood(int(port), path)))


if __name__ == "__main__":
    main()
