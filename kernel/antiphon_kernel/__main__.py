"""`python -m antiphon_kernel serve`: one kernel in the foreground."""

from __future__ import annotations

from antiphon_kernel.client.standard_streams import run_command


def _main() -> None:
    from antiphon_kernel.daemon import main

    main(prog_name="antiphon")


if __name__ == "__main__":
    run_command(_main)
