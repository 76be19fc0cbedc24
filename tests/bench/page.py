"""`make benchmarks`: runs benchmarks and writes docs/benchmarks.md.

    python -m tests.bench.page [document] [kernel] [models] [app] [soak]

Without a name all are run; a section whose benchmark is not run stays as it is.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.bench.earlier import comparison

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "benchmarks.md"
PLACES: Final = ("document", "kernel", "models", "app", "soak")
OPTIONS: Final = {"document": ["--long"]}
"""Arguments with which a benchmark is run for the page."""
INTRODUCTION: Final = """# Benchmarks

The last run, written by `make benchmarks`. Times are medians, with the 95th percentile beside them.
Absolute figures are of one machine and say little about another; ratios compare two things that
were measured in turns in the same run.
"""

MEANING: Final = {
    "kernel": """The rows that do worst, measured by what stands beside them, come first.

- **keystrokes one at a time**: a writer sends a keystroke when all readers have the one before. It
  is checked and on disk before anybody is shown it; the bare commit of SQLite in the same run is
  the part of it that the disk takes. hocuspocus shows first and saves later, its SQLite extension
  the whole document after a pause of seconds; y-websocket-server saves nothing. None of them checks
  what a client writes. The budget is that commit plus 0.5 ms; to 200 readers the sends alone take
  longer, as they do in servers that save nothing.
- **processor time of an update**: what all threads of the server have run while updates of 20
  characters came at a steady pace. At 10 a second most of it is waking up, so its budget is 1.75
  times what a bare server of `websockets` takes in the same run, which commits to SQLite in a
  thread before it sends and does nothing else. Asked were 600 us, which is out of reach.
  The kernel runs in uvloop, which took 4 % off it at 10 a second, 10 % at 100 and 9 % one at a
  time, in turns with asyncio's loop.

  In turns with the kernel as it was before this work (commit c01b03bf), on a quiet machine, an
  update takes 0.78 times its processor time at 10 a second (1,056 us and 1,284), 0.85 times at 100,
  0.25 times at 1,000 (113 and 454), 0.71 times one at a time, which is there in 0.49 ms in the
  place of 0.82, and 0.11 times at a random place (23 and 205).

  The floor was measured in turns at 10 a second on a busy machine, each for 180 updates. Of 10
  readers and without any library for WebSockets, a loop that only splits the frame and sends it
  takes 160 us, mostly in the sends; with a commit of one row before it 490; with that commit in a
  thread 540; the bare server 835. hocuspocus took 1,080 us and with SQLite 1,140, although it saves
  later; the kernel 1,350. So 600 us leave 60 for the check, the document and everything else.
  The code of one update takes 2 to 3 times as long at 10 a second as at 1,000, because other
  programs have emptied the processor's caches since the last one: at 10 (1,000) a second, reading
  and splitting frames and rate limits 95 (35) us, the check 118 (36), the document 113 (38),
  numbers and undo 99 (35), what is between them 75 (34), the statements of the transaction 97 (49),
  the looks at the files 49 (22), COMMIT 154 (89), the broadcast 162 (88). The rest is the loop, the
  hand-over to SQLite's thread and 29 us of timers that run without any update. With every commit in
  the loop's own thread it is 4 % less at 10 a second, 18 % at 100 and 10 % one at a time; while the
  disk is busy commits take milliseconds, and the loop would stand still for each of them.
- **keystrokes at random places, in a row, 20-character appends**: one writer has 100 updates under
  way; updates a second that all readers have got. A run lasts a second: after a
  rest a connection may send 20,000 messages at once, and 2,000 a second in the long run, so that a
  longer run measures that limit. Measured in turns on a quiet machine the kernel ran 23 us for an
  update at a random place and 16 for an append, 1.4 times as long: each of the former brings an
  item that has to be decoded, checked and put into the order, 100 of the latter are one item.
  After a broadcast of several changes more are collected for 1 ms at most. Before it was 5 ms,
  which a writer with 100 updates under way waits for: in turns 1 ms brings 1.6 times as many
  appends and 1.7 times as many keystrokes in a row a second to 10 readers, 1.25 times as many
  appends to 50, 1.15 times as many at random places to either; to 200 it makes no difference, since
  the client is the limit. Such a burst then costs 5 to 20 % more processor time for each update; a
  steady pace of 100 or 1,000 a second costs what it did. Insertions at four places or more that
  arrive at once are taken in as one update (it was eight): 0.91 times the processor time.
- **latency**: from sending an update to its arrival, at a steady pace, over all readers.

The client is the same for all servers: node's `ws` and yjs, which are no part of any of them.
""",
    "app": """**Processor time** beside a plain Textual list: a scrolling column with a `Markdown`
widget for each block, which is the usual way to show a conversation. Both lists are drawn in the
process of the benchmark, without a kernel; what is counted is all processor time until nothing is
left to do. Such a widget takes seconds for a text of 100 KB, so for 1 MB the editor alone is held
against a Textual `TextArea` with the same text.

Toad is not measured: every version of `batrachian-toad` on PyPI needs Python 3.14 or newer, and
antiphon is measured with Python 3.11.

The other rows are measured on a terminal, start and keystrokes beside the smallest Textual app with
an editor.

- **start**: from starting the process to a composer that can be typed in. The kernel that the app
  starts comes up meanwhile, and takes longer; bare Textual has neither.
- **long contexts**: text is visible when the last screen is, which comes from storage; cells can be
  edited when the app's replica is here. That holds the last 2,000 blocks at first, and twice as
  many each time that the person comes near the first of them; the key that goes to the first cell
  of all has the whole document read, in parts of 4 MB, and keys are answered between two of them.
- **memory**: an item of the CRDT takes about 350 bytes in pycrdt (yrs), whatever is in it, and a
  shared map or text 180 more. A block of 200 characters is a map, a text, its string and one item
  for each header field: 4.0 to 5.0 KB, of which 0.2 KB are its characters; the same block takes
  0.5 KB in an update and on disk. The header as one JSON string would make that 2.0 KB, and take
  from every other client the fields that it can read and set. Python's objects of the kernel and of
  the app are 0.5 KB a block besides, and either process 60 MB. The app holds what has been looked
  at. The kernel opens a long context with its last 2,000 blocks, too, in which people read and
  type; it reads all of it for what needs more: the turns of models and what a model's window
  holds, undo, searches, other tools, replicas of the whole context. Then its memory grows with the
  blocks, until nobody has needed that for half an hour. The first update of a client takes up to
  1.0 KB a block more, for the index of all items that it is checked against.

  The kernel closes contexts that nobody has used for five minutes, or for 15 seconds when more than
  32 are open. What it held of them is free at once, without a collection of garbage, and goes back
  to the system: a kernel of 56 MB with 41 contexts of 1,000 blocks takes 290 MB, and 76 MB when
  they are closed. The 20 MB are pages of Python's own allocator with a few small objects in each;
  contexts that are opened later use them again. The app frees the contexts that it has left at the
  next full collection of garbage, which may be twenty contexts later.
""",
    "soak": """Half an hour with three apps that people type in, one of which comes and goes. In
the first half four writers stream 50 words a second each, as models do; in the second they are
silent. What grows with the text grows in the first half only, a leak in both.
""",
}
"""Explanations of the rows of a section."""

WORST_FIRST: Final = frozenset({"kernel"})
"""Sections in which the rows that do worst, measured by what stands beside them, come first."""


def section(place: str) -> str:
    """Return what the benchmark of one place says now, as Markdown."""
    command = [str(Path(sys.executable).with_name("antiphon")), "bench", place, "--json"]
    command += OPTIONS.get(place, [])
    before = os.getloadavg()[0]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    figures = [json.loads(line) for line in done.stdout.splitlines()]
    return "\n".join(_lines(place, figures, before)) + "\n"


def _lines(place: str, figures: list[dict[str, Any]], load: float) -> Iterator[str]:
    yield f"## {place.capitalize()}\n"
    cores, version = os.cpu_count(), platform.python_version()
    command = " ".join(("antiphon bench", place, *OPTIONS.get(place, [])))
    yield (
        f"`{command}` on {cores} cores with Python {version}; load of the machine"
        f" when it began: {load:.1f}.\n"
    )
    if place in MEANING:
        yield MEANING[place]
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
    """The sections that a page has, by place."""
    parts = page.split("\n## ")[1:]
    return {part.split("\n")[0].lower(): f"## {part.strip()}\n" for part in parts}


def main(places: list[str]) -> None:
    known = sections_of(PAGE.read_text("utf-8")) if PAGE.exists() else {}
    for place in places or PLACES:
        known[place] = section(place)
    PAGE.write_text(whole(known), "utf-8")


def whole(sections: Mapping[str, str]) -> str:
    """Return the page of these sections, with what their figures were before."""
    told = {place: sections[place] for place in PLACES if place in sections}
    return "\n".join([INTRODUCTION, *told.values(), comparison(told)])


if __name__ == "__main__":
    main(sys.argv[1:])
