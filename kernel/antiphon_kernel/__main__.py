"""`python -m antiphon_kernel serve`: one kernel in the foreground."""

from __future__ import annotations

import gc

from antiphon_kernel.client.standard_streams import run_command


def _main() -> None:
    gc.disable()  # nothing that is imported is garbage
    from antiphon_kernel.daemon import main

    gc.enable()
    main(prog_name="antiphon")


if __name__ == "__main__":
    run_command(_main)
