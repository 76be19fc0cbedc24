"""`make benchmarks`: runs benchmarks and writes docs/benchmarks-details.md and docs/benchmarks.md.

    python -m tests.bench.page [document] [kernel] [files] [models] [app] [soak]

Without a name all are run; a section whose benchmark is not run stays as it is. What the page says
about the rows stands in it between the command and the table, and what figures were before in its
last section: both are kept. The summary says itself which figures it has.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "benchmarks-details.md"
SUMMARY: Final = ROOT / "docs" / "benchmarks.md"
PLACES: Final = ("document", "kernel", "files", "models", "app", "soak")
OPTIONS: Final = {"document": ["--long"]}
"""Arguments with which a benchmark is run for the page."""
WORST_FIRST: Final = frozenset({"kernel"})
"""Sections in which the rows that do worst, measured by what stands beside them, come first."""
COMPARISON: Final = "before and after"
"""The section that puts what figures were before beside what the others say."""


def section(place: str, explanation: str) -> str:
    """Return what the benchmark of one place says now, as Markdown."""
    command = [str(Path(sys.executable).with_name("antiphon")), "bench", place, "--json"]
    command += OPTIONS.get(place, [])
    before = os.getloadavg()[0]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    return "\n".join(_lines(place, explanation, figures, before)) + "\n"


def _lines(
    place: str, explanation: str, figures: list[dict[str, Any]], load: float
) -> Iterator[str]:
    yield f"## {place.capitalize()}\n"
    cores, version = os.cpu_count(), platform.python_version()
    command = " ".join(("antiphon bench", place, *OPTIONS.get(place, [])))
    yield (
        f"`{command}` on {cores} cores with Python {version}; load of the machine"
        f" when it began: {load:.1f}.\n"
    )
    if explanation:
        yield f"{explanation}\n"
    if place in WORST_FIRST:
        figures = sorted(figures, key=_goodness)
    yield "| figure | measured | p95 | budget | in the same run |"
    yield "|---|---|---|---|---|"
    for one in figures:
        yield "| " + " | ".join(_cells(one)) + " |"


def _goodness(one: Mapping[str, Any]) -> float:
    """Return how many times as good as its baseline a figure is; 0 over its budget without one."""
    if not one["ratio"]:
        return 0.0 if one["within"] is False else float("inf")
    ratio = float(one["ratio"])
    return ratio if one["unit"] == "/s" else 1 / ratio


def _cells(one: Mapping[str, Any]) -> Iterator[str]:
    yield one["name"]
    yield f"{one['median']:.4g} {one['unit']}".strip()
    yield f"{one['p95']:.4g}" if one["p95"] != one["median"] else ""
    kept = "" if one["within"] in (True, None) else " (exceeded)"
    yield f"{one['budget']:g}{kept}" if one["budget"] is not None else ""
    against = one["against"] or "the baseline"
    yield f"{one['ratio']:.3g} x {against} ({one['baseline']:.4g})" if one["ratio"] else ""


def sections_of(page: str) -> dict[str, str]:
    """The sections that a page has, by place; what stands before them has an empty name."""
    introduction, *parts = page.split("\n## ")
    found = {part.split("\n")[0].lower(): f"## {part.strip()}\n" for part in parts}
    return {"": introduction, **found}


def explanation_of(text: str) -> str:
    """Return what a section says between its command and its table."""
    return "\n\n".join(text.strip().split("\n\n")[2:-1])


def main(places: list[str]) -> None:
    known = sections_of(PAGE.read_text("utf-8"))
    for place in places or PLACES:
        known[place] = section(place, explanation_of(known.get(place, "")))
    PAGE.write_text(whole(known), "utf-8")
    SUMMARY.write_text(summary(SUMMARY.read_text("utf-8"), known), "utf-8")


def whole(sections: Mapping[str, str]) -> str:
    """Return the page of these sections, the figures of which stand in the comparison."""
    told = [sections[place] for place in PLACES if place in sections]
    rows = [list(_row(line)) for line in "\n".join(told).splitlines() if line.startswith("|")]
    now = {cells[0]: cells[1] for cells in rows}
    head, rule, table = sections[COMPARISON].strip().partition("|---|---|---|\n")
    compared = [f"{head}{rule}".rstrip()]
    for name, was, _ in map(_row, table.splitlines()):
        compared.append(f"| {name} | {was} | {now.get(name, 'not in this run')} |")
    return "\n".join([sections[""], *told, "\n".join(compared), ""])


def summary(page: str, sections: Mapping[str, str]) -> str:
    """Return a page whose rows name a figure at their end, and what it is beside, filled in."""
    told = "\n".join(sections[place] for place in PLACES if place in sections)
    figures: dict[str, list[list[str]]] = {}
    for name, *cells in map(_row, (line for line in told.splitlines() if line.startswith("| "))):
        figures.setdefault(name, []).append(cells)
    lines = []
    for line in page.splitlines():
        words, _, beside, name = [*_row(line), *[""] * 3][:4]
        if found := figures.get(name):
            against = beside.partition(" x ")[2].partition(" (")[0] or beside
            ratio = next((one[-1] for one in found if against and against in one[-1]), "")
            line = f"| {words} | {found[0][0]} | {ratio} | {name} |"
            line = re.sub(r"[0-9.]+e[+]\d+", lambda number: f"{float(number[0]):,.0f}", line)
        lines.append(line)
    return "\n".join([*lines, ""])


def _row(line: str) -> Iterator[str]:
    return (cell.strip() for cell in line.strip("|").split("|"))


if __name__ == "__main__":
    main(sys.argv[1:])
