"""`python -m antiphon.guest FILE`: the fork server of a host, which FILE talks to."""

from __future__ import annotations

import sys

from antiphon.guest.fork_server import serve

if __name__ == "__main__":
    serve(int(sys.argv[1]))
