"""`python -m antiphon.ssh`: the SSH host, as `antiphon share` starts it."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command()
@click.option("--data", type=click.Path(file_okay=False, exists=True, path_type=Path))
@click.option("--bind", default="127.0.0.1")
@click.option("--port", type=int, default=0)
@click.option("--ask", is_flag=True)
@click.option("--until", type=int)
def main(data: Path, bind: str, port: int, ask: bool, until: int | None) -> None:
    """Serve guests of the kernel of a data folder over SSH."""
    from antiphon.hosts.host import HostOptions, run_host
    from antiphon.ssh.server import listen

    sys.exit(run_host(HostOptions("ssh", data, bind, port, ask=ask, until=until), listen))


if __name__ == "__main__":
    main()
