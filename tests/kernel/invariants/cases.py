"""How many random cases run, and how one is run again.

`ANTIPHON_CASES` is the number of cases of the whole folder (a small one by default, so that it
fits into every run of the tests); `ANTIPHON_SEED` runs one seed alone.
"""

from __future__ import annotations

import os

DEFAULT_CASES = 150


def seeds(share: float) -> list[int]:
    """The seeds of one test, which has this share of all cases."""
    alone = os.environ.get("ANTIPHON_SEED")
    if alone is not None:
        return [int(alone)]
    return list(range(max(1, round(share * cases()))))


def cases() -> int:
    return int(os.environ.get("ANTIPHON_CASES", DEFAULT_CASES))


def again(test: str, seed: int) -> str:
    """The command that runs one case again."""
    return f"ANTIPHON_SEED={seed} .venv/bin/pytest -q tests/kernel/invariants -k {test}"
