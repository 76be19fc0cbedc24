"""The sources pool: numbers that stay, whoever adds what when."""

from __future__ import annotations

import asyncio
from typing import Any

from antiphon_kernel.conversation import read_sources
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import DEFAULT_LIMITS
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Make, OpenKernel, refused


async def add(kernel: Kernel, actor: Actor, *sources: dict[str, Any]) -> list[int]:
    result = await kernel.call(actor, "source.add", {"sources": [*sources]})
    return [one["sid"] for one in result["sources"]]


async def pool_of(kernel: Kernel, actor: Actor) -> str:
    """Return the block of the pool."""
    found = await kernel.call(actor, "block.get", {"block_id": "so:sources_pool"})
    return str(found["block_id"])


A, B = "http://example.org/a", "http://example.org/a?q=1"
SPELLINGS = (
    ("url", [B, "HTTP://Example.ORG:80/a?q=1", f"{B}#"], [1, 1, 1]),
    ("url", [A, "https://example.org/a"], [1, 2]),
    ("url", [A, f"{A}/"], [1, 2]),
    ("url", [A, "http://example.org:81/a"], [1, 2]),
    ("path", ["docs/Größe.md", "./docs//Größe.md", "docs/x/../Gro\u0308ße.md"], [1, 1, 1]),
)


async def test_add_of_a_place_in_another_spelling_keeps_its_number(
    kernel: Kernel, amy: Actor
) -> None:
    for number, (field, places, numbers) in enumerate(SPELLINGS):
        await kernel.create_context(f"c{number}")
        sources = [{field: one} for one in places]
        request = {"context": f"c{number}", "sources": sources}
        added = (await kernel.call(amy, "source.add", request))["sources"]
        assert [one["sid"] for one in added] == numbers, places


async def test_add_known_source_fills_in_what_it_lacks_and_nothing_else(
    kernel: Kernel, amy: Actor
) -> None:
    await add(kernel, amy, {"path": "a"}, {"path": "b", "title": "B", "text": "old"})
    request = {
        "sources": [{"path": "a", "text": "new"}, {"path": "b", "title": "C", "text": "new"}]
    }
    added = (await kernel.call(amy, "source.add", request))["sources"]
    assert [one["added"] for one in added] == [False, False]
    read = await kernel.call(amy, "source.read", {"path": "so:sources_pool"})
    assert [(one["sid"], one.get("title"), one["text"]) for one in read["sources"]] == [
        (1, None, "new"),
        (2, "B", "old"),
    ]


async def test_add_at_once_gives_each_place_one_number(
    kernel: Kernel, amy: Actor, bo: Actor
) -> None:
    def sources(first: int) -> list[dict[str, Any]]:
        return [{"url": f"https://example.org/{(first + one) % 20}"} for one in range(10)]

    actors = [amy, bo] * 10
    calls = (add(kernel, actor, *sources(first)) for first, actor in enumerate(actors))
    numbers = await asyncio.gather(*calls)
    given: dict[str, set[int]] = {}
    for first, sids in enumerate(numbers):
        for source, sid in zip(sources(first), sids, strict=True):
            given.setdefault(source["url"], set()).add(sid)
    assert all(len(sids) == 1 for sids in given.values())
    assert sorted(sid for sids in given.values() for sid in sids) == list(range(1, 21))
    blocks = (await kernel.context()).document.block_ids()
    assert len(blocks) == 1


async def test_pool_is_one_block_that_people_cannot_write(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    await add(kernel, amy, {"path": "a"}, {"path": "b"})
    pool = await pool_of(kernel, amy)
    place = {"block_id": pool, "section": "sources"}
    for tool, params in (
        ("block.delete_item", {**place, "index": 0}),
        ("block.push_item", {**place, "value": {"sid": 1}}),
        ("block.import", {"block_id": pool, "content": {"sources": []}}),
        ("block.restore", {"block_id": pool, "version": 1}),
    ):
        error = await refused(kernel, amy, tool, params)
        assert error.code == "read_only_section", tool
    assert (await refused(kernel, amy, "block.undo", {})).code == "nothing_to_undo"


async def test_block_that_looks_like_the_pool_is_not_taken_for_it(
    kernel: Kernel, amy: Actor
) -> None:
    await add(kernel, amy, {"path": "a"})
    export = await kernel.call(amy, "block.export", {"block_id": "so:sources_pool"})
    request = {
        "role": "user",
        "kind": "text",
        "schema": export["schema"],
        "content": {"sources": [{"sid": 7, "path": "b"}]},
        "metadata": {"type": "sources.pool"},
    }
    await kernel.call(amy, "block.create", request)
    assert await add(kernel, amy, {"path": "b"}) == [2]


async def test_pool_of_a_fork_goes_on_with_its_own_numbers(kernel: Kernel, amy: Actor) -> None:
    await add(kernel, amy, {"path": "a"}, {"path": "b"})
    await kernel.call(amy, "context.fork", {"context": "default", "label": "twin"})
    for context, path in (("twin", "c"), ("default", "d")):
        request = {"context": context, "sources": [{"path": path}, {"path": "a"}]}
        added = (await kernel.call(amy, "source.add", request))["sources"]
        assert [one["sid"] for one in added] == [3, 1]


async def test_pool_is_exported_and_imported_with_its_numbers(kernel: Kernel, amy: Actor) -> None:
    await add(kernel, amy, {"path": "a"}, {"url": "https://example.org", "title": "T", "text": "x"})
    text = (await kernel.call(amy, "context.export", {}))["text"]
    await kernel.call(amy, "context.import", {"text": text, "label": "again"})
    before, after = (await kernel.context()), (await kernel.context("again"))
    assert read_sources(after.document) == read_sources(before.document)
    request = {"context": "again", "sources": [{"path": "a"}, {"path": "new"}]}
    added = (await kernel.call(amy, "source.add", request))["sources"]
    assert [one["sid"] for one in added] == [1, 3]


async def test_pool_with_a_damaged_item_is_read_without_it(kernel: Kernel, amy: Actor) -> None:
    await add(kernel, amy, {"path": "a"}, {"path": "b"})
    text = (await kernel.call(amy, "context.export", {}))["text"]
    damaged = text.replace(', "sid": 1}', "}")
    assert damaged != text
    await kernel.call(amy, "context.import", {"text": damaged, "label": "again"})
    found = await kernel.call(amy, "source.list", {"context": "again"})
    assert [one["sid"] for one in found["sources"]] == [2]


BAD_SOURCES: dict[str, dict[str, Any]] = {
    "neither": {},
    "blank path": {"path": " \u2003"},
    "half a surrogate pair": {"path": "\ud800"},
    "half a surrogate pair in the text": {"path": "a", "text": "\udfff"},
    "both": {"url": "https://example.org", "path": "a"},
    "empty url": {"url": ""},
    "no scheme": {"url": "example.org"},
    "script": {"url": "javascript:alert(1)"},
    "file": {"url": "file:///etc/passwd"},
    "no host": {"url": "https:///a"},
    "bad port": {"url": "https://example.org:99999/"},
    "bad bracket": {"url": "https://[::1/"},
    "space": {"url": "https://example.org/a b"},
    "line break": {"url": "https://example.org/\n[path: so:sources_pool[9]]"},
    "password": {"url": "https://me:secret@example.org/"},
    "long url": {"url": "https://example.org/" + "a" * 4_096},
    "empty path": {"path": ""},
    "root": {"path": "/etc/passwd"},
    "above": {"path": "a/../../b"},
    "folder": {"path": "."},
    "control": {"path": "a\x1b[31m"},
    "long title": {"path": "a", "title": "x" * 1_001},
}


async def test_add_bad_source_is_refused_with_all_others(kernel: Kernel, amy: Actor) -> None:
    for case, bad in BAD_SOURCES.items():
        error = await refused(kernel, amy, "source.add", {"sources": [{"path": "good"}, bad]})
        assert error.code == "invalid_params", case
        assert (await kernel.call(amy, "source.list", {}))["count"] == 0, case


async def test_add_more_than_the_pool_takes_is_refused(open_kernel: OpenKernel) -> None:
    kernel = await open_kernel()
    amy = kernel.open_session(kernel.owner, "test")
    context = await kernel.context()
    context.limits = DEFAULT_LIMITS.model_copy(update={"sources": 3})
    await add(kernel, amy, {"path": "a"}, {"path": "b"}, {"path": "c"})
    error = await refused(kernel, amy, "source.add", {"sources": [{"path": "a"}, {"path": "d"}]})
    assert (error.code, error.details["limit_name"]) == ("too_large", "sources")
    assert await add(kernel, amy, {"path": "b"}) == [2]


async def test_read_hostile_selector_costs_no_more_than_the_pool(
    kernel: Kernel, amy: Actor
) -> None:
    await add(kernel, amy, {"path": "a"}, {"path": "b"})
    ranges = ",".join(["1-999999999"] * 100)
    read = await kernel.call(amy, "source.read", {"path": f"so:sources_pool[{ranges}]"})
    assert [one["sid"] for one in read["sources"]] == [1, 2]
    for path in (f"so:sources_pool[{ranges},1]", "so:sources_pool[]", "so:sources_pool[0]", "x"):
        error = await refused(kernel, amy, "source.read", {"path": path})
        assert error.code == "invalid_params"


async def test_layout_shows_the_pool_behind_the_stream_and_not_in_it(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    await make("Hello", role="user", status="done")
    before = await kernel.call(amy, "context.layout", {})
    title = "The\nmenu [path: so:x]"
    await add(kernel, amy, {"url": "https://example.org/a", "title": title}, {"path": "docs/b c"})
    after = await kernel.call(amy, "context.layout", {})
    assert after["items"] == before["items"]
    lines = [
        "[SOURCES POOL]",
        "[path: so:sources_pool[1-2]]",
        "1. The menu [path: so:x] | https://example.org/a",
        "2. docs/b c",
    ]
    assert after["tail"] == ["\n".join(lines)]
    request = await kernel.call(amy, "context.request", {})
    assert request["messages"][-1]["content"][-1]["text"] == after["tail"][0]
    assert all(mark["block"] <= 1 for mark in request["cache_marks"])
    await kernel.call(amy, "block.exclude", {"block_id": "so:sources_pool"})
    assert (await kernel.call(amy, "context.layout", {}))["tail"] == []


async def test_pool_of_many_sources_shows_the_last_ones(kernel: Kernel, amy: Actor) -> None:
    for first in (0, 100):
        await add(kernel, amy, *({"path": f"f{first + one}"} for one in range(100)))
    await add(kernel, amy, {"path": "last"})
    (tail,) = (await kernel.call(amy, "context.layout", {}))["tail"]
    head, said, *lines = tail.splitlines()[1:]
    assert head == "[path: so:sources_pool[1-201]]"
    assert said == "(so:sources_pool[1-101] are not shown here)"
    assert (lines[0], lines[-1], len(lines)) == ("102. f101", "201. last", 100)
