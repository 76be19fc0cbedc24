"""Starts kernels quickly: one warm process that forks a kernel for every line it reads.

A line is the JSON of `{"data": FOLDER, "faults": [...]}`; the answer is the process id.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.process.run import Settings, run_kernel
from tests.kernel.crash.faults import Fault, inject


def serve(data: Path, faults: list[Fault]) -> None:
    """Be a kernel until killed."""

    def ready(address: KernelAddress) -> None:
        for fault in faults:
            inject(fault)

    run_kernel(Settings(data=data, project=data), ready, echo=False)


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for what is killed
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.close(0)
            try:
                serve(Path(asked["data"]), [Fault(**fault) for fault in asked["faults"]])
            finally:
                os._exit(1)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
