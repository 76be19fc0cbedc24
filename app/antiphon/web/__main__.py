"""`python -m antiphon.web`: the web host, as `antiphon share --web` starts it."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command()
@click.option("--data", type=click.Path(file_okay=False, exists=True, path_type=Path))
@click.option("--bind", default="127.0.0.1")
@click.option("--port", type=int, default=0)
@click.option("--url")
def main(data: Path, bind: str, port: int, url: str | None) -> None:
    """Serve guests of the kernel of a data folder in browsers."""
    from antiphon.hosts.host import HostOptions, run_host
    from antiphon.web.server import listen

    sys.exit(run_host(HostOptions("web", data, bind, port, url=url), listen))


if __name__ == "__main__":
    main()
