"""Figures as they were before the work on speed, measured from outside with neutral clients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

TITLE: Final = "Before and after"

_INTRODUCTION: Final = """Before: measured from outside with the same clients, on another day.
After: the figures of this page. The two are of different runs, so only large differences mean
anything.
"""

_WRITERS: Final = {
    "20-character appends": ("15,700 /s", "13,100 /s", "8,400 /s"),
    "keystrokes in a row": ("16,100 /s", "14,100 /s", "6,800 /s"),
    "keystrokes at random places": ("3,200 /s", "3,600 /s", "3,100 /s"),
}
_READERS: Final = (10, 50, 200)

_ONE_AT_A_TIME: Final = ("5.6 ms (180 /s)", "5.9 ms (170 /s)", "6.7 ms (150 /s)")

_OTHERS: Final = {
    "a call: cost at 1,000,000 operations / at 1,000": "318 us, 184 us at 100,000",
    "enter EDIT, cell of 1 MB": "seconds",
    "enter EDIT, cell of 35,000 lines": "seconds (20,000 lines)",
    "memory of the kernel at the end": "75 MB, after 16 minutes",
    "memory of the app at the end": "122 MB, after 16 minutes",
}

_OPENING: Final = {
    "10,000 blocks, cold: text visible": "1.8 s",
    "10,000 blocks, warm: text visible": "1.7 s",
    "10,000 blocks, cold: memory of the app": "148 MB",
    "10,000 blocks, cold: memory of the kernel": "137 MB",
    "100,000 blocks, cold: text visible": "19 s",
    "100,000 blocks, warm: text visible": "7 s",
    "100,000 blocks, cold: memory of the app": "655 MB",
    "100,000 blocks, cold: memory of the kernel": "846 MB",
}


def before() -> dict[str, str]:
    """Return what each figure was, by the name that it has on the page."""
    found = {
        f"{load}, {number} readers": rate
        for load, rates in _WRITERS.items()
        for number, rate in zip(_READERS, rates, strict=True)
    }
    for number, took in zip(_READERS, _ONE_AT_A_TIME, strict=True):
        found[f"keystrokes one at a time, {number} readers, p50"] = took
    for pace in (10, 100):
        found[f"processor time of an update at {pace}/s, 10 readers"] = "1,500 to 1,800 us"
    found["latency at 100 updates/s, 50 readers, p50"] = "2.5 ms"
    found["latency at 100 updates/s, 50 readers, p95"] = "3.4 ms"
    return {**found, **_OPENING, **_OTHERS}


def comparison(sections: Mapping[str, str]) -> str:
    """Return the section that puts what was before beside what the page's sections say."""
    now = dict(_figures("\n".join(sections.values())))
    lines = [f"## {TITLE}\n", _INTRODUCTION, "| figure | before | after |", "|---|---|---|"]
    for name, was in before().items():
        lines.append(f"| {name} | {was} | {now.get(name, 'not in this run')} |")
    return "\n".join(lines) + "\n"


def _figures(page: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each figure in the tables of a page, and what was measured."""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 5:
            yield cells[0], cells[1]
