"""`python -m antiphon`, and what the `antiphon` script runs."""

from __future__ import annotations

from antiphon.cli.signals import default_sigint
from antiphon_kernel.client.standard_streams import run_command


def main() -> None:
    """Run the command line; ends the process with one of the documented exit codes."""
    run_command(_run)


def _run() -> None:
    with default_sigint():
        from antiphon.cli.commands import antiphon

    antiphon(prog_name="antiphon")


if __name__ == "__main__":
    main()
