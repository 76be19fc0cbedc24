"""Starts kernels and writers quickly: one warm process that forks one for every line it reads.

A line is the JSON of `{"data": FOLDER, "faults": [...]}` for a kernel, or of
`{"data": FOLDER, "prefix": WORD, "facts": FILE}` for a writer, with the user's state folder as
`state`; the answer is the process id.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.daemon.run import DaemonSettings, run_kernel
from tests.kernel.crash.faults import Fault, inject
from tests.kernel.crash.writer import write


def serve(data: Path, faults: list[Fault]) -> None:
    """Be a kernel until killed."""

    def ready(address: KernelAddress) -> None:
        for fault in faults:
            inject(fault)

    run_kernel(DaemonSettings(data=data, project=data), ready)


def live(asked: dict[str, Any]) -> None:
    """Be what was asked for."""
    data = Path(asked["data"])
    os.environ["XDG_STATE_HOME"] = asked["state"]
    if "facts" in asked:
        os.dup2(os.open(asked["facts"], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 1)
        write(data, asked["prefix"])
    else:
        serve(data, [Fault(**fault) for fault in asked["faults"]])


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for what is killed
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(0)
            try:
                live(json.loads(line))
            finally:
                os._exit(1)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
