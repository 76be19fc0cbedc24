"""Formats of a replay that need no app: the page to be read, and the recording."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from antiphon.export.demo import person_events
from antiphon.export.recording import recording_of
from antiphon.export.static_page import static_page
from antiphon.replay.replay import Replay
from antiphon_kernel.providers.events import TextDelta, ThinkingDelta, ToolCallEvent
from antiphon_kernel.providers.provider import ModelPrompt, RoundRequest
from antiphon_kernel.providers.recording import ScriptedProvider, parse_recordings
from antiphon_kernel.types.ids import ContextId
from antiphon_kernel.types.replay import (
    ChangedHeader,
    CreatedBlock,
    ReplayChange,
    ReplayEdit,
    ReplayEnd,
    ReplayHeader,
    ReplayLine,
    ReplayPrincipal,
    SplicedText,
    write_replay_line,
)


class Run:
    """Lines of a replay in which amy writes with aria and bela."""

    def __init__(self, label: str = "songs") -> None:
        self.at = 0
        self.lines: list[ReplayLine] = [ReplayHeader(context_id="0", label=label, started=0)]
        people = (("amy", "human"), ("aria", "model"), ("bela", "model"))
        for slot, (name, kind) in enumerate(people):
            self.lines.append(ReplayPrincipal(id=name, username=name, kind=kind, colour=slot))

    def change(self, ms: int, by: str, *edits: ReplayEdit) -> None:
        """Somebody changes something, so many milliseconds after the change before."""
        self.at += ms
        change = ReplayChange(at=self.at, version=0, by=by, operation="", edits=list(edits))
        self.lines.append(change)

    def create(self, ms: int, by: str, block: str, kind: str, text: str = "", **more: Any) -> None:
        role = "user" if by == "amy" else "model"
        header = {"kind": kind, "role": role, "status": "running", "order": block, "author": by}
        header |= {"created": "2026-11-26T20:08:07.962Z", **more}
        self.change(ms, by, CreatedBlock(block=block, header=header, text=text))

    def write(self, ms: int, by: str, block: str, offset: int, text: str, deleted: int = 0) -> None:
        edit = SplicedText(block=block, offset=offset, deleted=deleted, inserted=text)
        self.change(ms, by, edit)

    def set(self, ms: int, by: str, block: str, **fields: Any) -> None:
        self.change(ms, by, ChangedHeader(block=block, fields=fields))

    def replay(self) -> Replay:
        lines = (*self.lines, ReplayEnd(changes=0))
        return Replay.read([write_replay_line(one).encode() for one in lines], max_pause=3)


async def test_recording_of_a_run_is_played_with_the_same_texts_at_the_same_pace() -> None:
    run = Run()
    run.create(0, "amy", "a", "text", "Sin")
    run.write(60_000, "amy", "a", 3, "g,\nplease")
    run.set(10, "amy", "a", status="done")
    run.create(100, "aria", "b", "thinking", parent="a")
    for word in ("I ", "see", "."):
        run.write(40, "aria", "b", {"I ": 0, "see": 2, ".": 5}[word], word)
    run.create(10, "aria", "c", "tool_call", "ls", parent="a", status="pending", tool_name="shell")
    run.set(30, "aria", "c", input='{"command": "ls"}', status="running")
    run.create(5, "bela", "d", "text", "Me too.", parent="a")
    run.set(1_000, "aria", "c", status="done")
    run.create(200, "aria", "e", "text", parent="a")
    run.write(0, "aria", "e", 0, "Two chirs")
    run.write(100, "amy", "e", 6, "o")
    run.write(100, "aria", "e", 10, " sing.")
    run.set(0, "aria", "e", status="done")
    run.create(500, "amy", "f", "tool_call", "date")
    run.create(9_000, "amy", "g", "text", "Again", status="done")
    run.create(100, "aria", "h", "text", "No.", parent="g")
    text = recording_of(run.replay())

    first, bela, second = parse_recordings(text, "run.jsonl", default_model="x")
    assert [(one.model, one.is_answer) for one in (first, bela)] == [("aria", True), ("bela", True)]
    assert [step.wait_ms for steps in first.rounds for step in steps] == [
        *(40, 40, 40, 40, 200, 200)
    ]

    aria, here = ScriptedProvider([first, second], speed=math.inf), ContextId("0" * 32)
    played = [
        [event async for event in aria.stream(RoundRequest(here, number, ModelPrompt()))]
        for number in (0, 1, 0)
    ]
    (*thoughts, call), *texts = played
    assert [type(one) for one in thoughts] == [ThinkingDelta] * 3
    assert isinstance(call, ToolCallEvent)
    assert (call.name, call.input) == ("shell", {"command": "ls"})
    said = [
        "".join(one.text for one in events if isinstance(one, TextDelta | ThinkingDelta))
        for events in (thoughts, *texts)
    ]
    assert said == ["I see.", "Two chirs sing.", "No."]

    events = list(person_events(text))
    assert [one.get("text", one.get("keys")) for one in events] == [
        keys for message in ("Sing,\nplease", "!date", "Again") for keys in (message, ["enter"])
    ]
    # A pause is no longer than three seconds; the next message waits until it is due.
    assert [one["at_ms"] for one in events[:2]] == [3_010 - 12 * 90 - 400, 400]


def test_recording_types_messages_as_messages_whatever_is_in_them() -> None:
    run = Run()
    for number, text in enumerate(("!ls", "/new x", "a\x1b\x11")):
        run.create(9_000, "amy", str(number), "text", text, status="done")
    typed = [one.get("text") for one in person_events(recording_of(run.replay()))]
    assert typed[::2] == [" !ls", " /new x", "a␛␑"]


class Elements(HTMLParser):
    """Elements of a page with their attributes, and its texts by the author who is marked."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.marked: list[tuple[str | None, str]] = []
        self._author: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._author = dict(attrs).get("title") if tag == "span" else self._author

    def handle_endtag(self, tag: str) -> None:
        self._author = None if tag == "span" else self._author

    def handle_data(self, data: str) -> None:
        if self._author is not None:
            self.marked.append((self._author, data))


def test_static_page_marks_who_wrote_what_inside_of_markdown() -> None:
    run = Run()
    run.create(0, "amy", "b", "text", "Sing.", status="done")
    text = "# A *song*\n\n> Two `chirs` &amp; one\n> page\n\n```\nx = 1\n```\n"
    run.create(0, "aria", "a", "text", text)
    for found, insert in (("irs", "o"), ("page", "small "), ("x =", "y = "), ("ong", "tr")):
        run.write(0, "amy", "a", text.index(found), insert)
        text = text.replace(found, insert + found, 1)
    run.create(0, "aria", "c", "thinking", "Hm\nm.")
    run.create(0, "aria", "d", "tool_call", "rm <it>", tool_name="shell")
    page = static_page(run.replay())
    assert Elements(page).marked == [("amy", one) for one in ("tr", "o", "small ", "y = ")]
    assert "<h1>A <em>s<span" in page
    assert page.index("<em>") < page.index("Sing.")  # blocks are in their order
    assert "<summary>thinking</summary>" in page
    assert "<summary>shell <code>rm &lt;it&gt;</code></summary><pre>rm &lt;it&gt;</pre>" in page
    assert re.search(r"amy</b> <time>2026-11-26 20:08Z</time>", page)


EVIL = """<script>alert(1)</script> <img src=x onerror=alert(1)>
[a](javascript:alert(1)) [b](&#106;avascript:alert(1)) [c](data:text/html,x) ![d](http://e.test/f)
![](//e.test) <javascript:alert(1)> [good](https://e.test/?"><script> "t\u202e&#x202e;")
\u202egnp\u2066 \x1b[31m \x00 &#x202e; &lt;b&gt;

<style>*{color:red}</style>

|a|
|:-|
|</td><script>|

```"><script>
</code></pre><script>
```
"""


def test_static_page_runs_nothing_and_asks_nobody_whatever_is_written() -> None:
    run = Run(label="</title><script>")
    for number, kind in enumerate(("text", "thinking", "tool_call", "tool_result", "file", "new")):
        more = {"tool_name": EVIL, "path": EVIL, "status": "error"}
        run.create(0, "amy", str(number), kind, EVIL, **more)
    page = static_page(run.replay())
    tags = Elements(page).tags
    names = {tag for tag, _ in tags}
    assert not names & {"script", "img", "iframe", "object", "link", "base", "form", "svg"}
    assert [tag for tag, _ in tags].count("style") == 1
    attributes = {name for _, attrs in tags for name in attrs}
    assert attributes <= {
        *("lang", "charset", "http-equiv", "content", "name", "class", "title", "href", "rel"),
    }
    addresses = {attrs["href"] for tag, attrs in tags if tag == "a"}
    assert addresses == {"https://e.test/?%22%3E%3Cscript%3E"}
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", page)
    assert "default-src 'none'; style-src 'sha256-" in page


@pytest.mark.parametrize(
    "arguments", ['{"command": "ls █████', "[" * 2_000, '{"command": "\\ud800"}']
)
def test_recording_has_no_call_whose_arguments_cannot_be_read(arguments: str) -> None:
    run = Run()
    run.create(0, "aria", "a", "tool_call", tool_name="shell", input=arguments)
    run.create(10, "aria", "b", "text", "Done.")
    _, *events = recording_of(run.replay()).splitlines()
    assert [json.loads(one)["type"] for one in events] == ["text"]
