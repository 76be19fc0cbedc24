"""A measured figure beside its budget and its baseline, for people and for programs."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of a result."""

    name: str
    unit: str
    median: float
    p95: float
    baseline: float | None = None
    """Median of the same thing, done by `against` in the same run."""
    against: str | None = None
    budget: float | None = None
    """The median may not be more."""
    at_least: float | None = None
    """The median may not be less; with a baseline, the ratio may not."""

    @property
    def ratio(self) -> float | None:
        return self.median / self.baseline if self.baseline else None

    @property
    def within(self) -> bool | None:
        """Whether the budget is kept, where there is one."""
        if self.budget is not None:
            return self.median <= self.budget
        if self.at_least is None:
            return None
        return (self.ratio if self.ratio is not None else self.median) >= self.at_least


def figure(
    name: str,
    unit: str,
    samples: Sequence[float],
    *,
    baseline: Sequence[float] = (),
    against: str | None = None,
    budget: float | None = None,
    at_least: float | None = None,
) -> Figure:
    """A figure from what was measured again and again."""
    ordered = sorted(samples)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
    usual = statistics.median(baseline) if baseline else None
    return Figure(name, unit, statistics.median(ordered), p95, usual, against, budget, at_least)


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """Return the parser of a benchmark's arguments; `doc` is the docstring of its module."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one JSON object a figure")
    return parser


def print_figures(figures: Iterable[Figure], *, as_json: bool) -> None:
    """Print each figure when it is known: one JSON object, or one row of a table."""
    for one in figures:
        said = {**asdict(one), "ratio": one.ratio, "within": one.within}
        print(json.dumps(said) if as_json else row(one), flush=True)


def row(one: Figure) -> str:
    """The figure for people."""
    measured = f"{one.median:10.4g} {one.unit:3}"
    if one.p95 != one.median:
        measured += f" (p95 {one.p95:.4g})"
    budget = ""
    if one.budget is not None:
        budget = f"budget {one.budget:g}{'' if one.within else ', exceeded'}"
    elif one.at_least is not None:
        budget = f"at least {one.at_least:g}{'' if one.within else ', missed'}"
    against = f"{one.ratio:.3g} x {one.against} ({one.baseline:.4g})" if one.ratio else ""
    return f"{one.name:58}{measured:32}{budget:24}{against}".rstrip()
