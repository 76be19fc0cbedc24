"""`python -m antiphon.hosts DATA OPTIONS`: a host, as `antiphon share` starts it."""

from __future__ import annotations

import sys
from pathlib import Path

from antiphon.hosts.host import run_host
from antiphon.hosts.host_address import HostOptions

if __name__ == "__main__":
    sys.exit(run_host(Path(sys.argv[1]), HostOptions.model_validate_json(sys.argv[2])))
