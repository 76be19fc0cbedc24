"""How many random cases run, and how one is run again.

`ANTIPHON_CASES` is the number of cases of the whole folder (a small one by default, so that it
fits into every run of the tests); `ANTIPHON_SEED` runs one seed alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

DEFAULT_CASES = 150


def seeds(share: float) -> list[int]:
    """The seeds of one test, which has this share of all cases."""
    alone = os.environ.get("ANTIPHON_SEED")
    if alone is not None:
        return [int(alone)]
    return list(range(max(1, round(share * cases()))))


def cases() -> int:
    return int(os.environ.get("ANTIPHON_CASES", DEFAULT_CASES))


@contextmanager
def reproducible(test: str, seed: int, told: Callable[[], str] | None = None) -> Iterator[None]:
    """Whatever fails inside says how this one case is run again.

    Args:
        told: what else there is to say of the failure.
    """
    try:
        yield
    except BaseException as error:
        if told is not None:
            error.add_note(told())
        error.add_note(
            f"ANTIPHON_SEED={seed} .venv/bin/pytest -q tests/kernel/invariants -k {test}"
        )
        raise
