"""`python -m antiphon_kernel serve`: one kernel in the foreground."""

from __future__ import annotations

from antiphon_kernel.process.command import main

if __name__ == "__main__":
    main(prog_name="antiphon")
