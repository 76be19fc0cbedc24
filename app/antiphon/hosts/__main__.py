"""`python -m antiphon.hosts`: a host, as `antiphon share` starts it."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from antiphon.hosts.host_address import HostKind


@click.command()
@click.argument("kind", type=click.Choice(["ssh", "web"]))
@click.option("--data", type=click.Path(file_okay=False, exists=True, path_type=Path))
@click.option("--bind", default="127.0.0.1")
@click.option("--port", type=int, default=0)
@click.option("--ask", is_flag=True)
@click.option("--until", type=int)
@click.option("--url")
def main(
    kind: HostKind,
    data: Path,
    bind: str,
    port: int,
    ask: bool,
    until: int | None,
    url: str | None,
) -> None:
    """Serve guests of the kernel of a data folder."""
    from antiphon.hosts.host import HostOptions, run_host

    server = import_module(f"antiphon.{kind}.server")
    sys.exit(run_host(HostOptions(kind, data, bind, port, ask, until, url), server.listen))


if __name__ == "__main__":
    main()
