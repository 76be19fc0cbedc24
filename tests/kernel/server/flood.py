"""Connections that are opened and held: silent, dripping, half open, or in a flood; at both doors.

python -m tests.kernel.server.flood PORT SOCKET SECONDS
"""

from __future__ import annotations

import contextlib
import json
import socket as sockets
import sys
import time
from collections import Counter

DRIP = b"POST /call/session.whoami HTTP/1.1\r\nHost: localhost\r\nX: "
HELD = 200


def open_one(port: int, path: str, number: int) -> sockets.socket:
    """Every second connection goes to the unix socket, until that many are held."""
    sock = sockets.socket(sockets.AF_UNIX if number % 2 and number < HELD else sockets.AF_INET)
    sock.settimeout(1.0)
    sock.connect(path if sock.family == sockets.AF_UNIX else ("127.0.0.1", port))
    return sock


def flood(port: int, path: str, seconds: float) -> Counter[str]:
    """How often each thing was done."""
    done: Counter[str] = Counter()
    held: list[sockets.socket] = []
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
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
        time.sleep(0.002)
    for sock in held:
        sock.close()
    return done


if __name__ == "__main__":
    sys.stdout.write(json.dumps(flood(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]))))
