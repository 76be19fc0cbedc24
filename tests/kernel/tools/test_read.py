"""Searches find what is there, wherever and whenever it was written; lists hold together.

`block.list`: every filter works, depth counts generations. `context.list`: how far each context
has come, and what others have changed in it.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.contexts import Context
from antiphon_kernel.contexts.block_tree import BlockTree
from antiphon_kernel.document.document import Document
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import ErrorCode
from antiphon_kernel.types.records import Actor, BlockHeader
from tests.errors import raises
from tests.kernel.kernel.calls import Caller, Make, OpenKernel, refused

ALPHABET = (
    "abAB \n\té\N{LATIN SMALL LETTER LONG S}ßİıK\N{KELVIN SIGN}\0\ufffd\N{GRINNING FACE}\"'*漢"
)


async def search(kernel: Kernel, actor: Actor, query: str, **params: Any) -> dict[str, Any]:
    request = {"query": query, "kinds": ["file", "text"], **params}
    return await kernel.call(actor, "kernel.search", request)


async def found(kernel: Kernel, actor: Actor, query: str, **params: Any) -> list[str]:
    answer = await search(kernel, actor, query, **params)
    return [one["block_id"] for one in answer["results"]]


async def test_match_says_where_it_is_in_lines_and_code_points(call: Caller, make: Make) -> None:
    block = await make("zero\none\n\N{GRINNING FACE} two two\nthree\n")
    answer = await call("block.search", block_id=block, query="two", context_lines=1)
    around = {"line": 2, "content": "\N{GRINNING FACE} two two"}
    around |= {"before": ["one"], "after": ["three"]}
    assert answer == {
        "matches": [
            {**around, "match_start": 2, "match_end": 5},
            {**around, "match_start": 6, "match_end": 9},
        ],
        "truncated": False,
        "version": 1,
    }


async def test_regular_expression_that_is_bad_or_runs_away_is_an_error(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    block = await make("a" * 60 + "!", kind="file")
    for tool, extra in (("block.search", {"block_id": block}), ("kernel.search", {})):
        error = await refused(kernel, amy, tool, {"query": "(a", "regex": True, **extra})
        assert error.code is ErrorCode.INVALID_REGEX
        error = await refused(kernel, amy, tool, {"query": "x" * 1_001, **extra})
        assert error.code is ErrorCode.TOO_LARGE
        error = await refused(kernel, amy, tool, {"query": "a\nb", **extra})
        assert error.code is ErrorCode.INVALID_PARAMS
    error = await refused(kernel, amy, "kernel.search", {"query": "(a|aa)+$", "regex": True})
    assert error.code is ErrorCode.REGEX_TIMEOUT


async def test_slow_regular_expression_does_not_block_other_calls(call: Caller, make: Make) -> None:
    block = await make("a" * 60 + "!", kind="file")
    request = {"block_id": block, "query": "(a|aa)+$", "regex": True}
    running = asyncio.create_task(call("block.search", **request))
    longest = 0.0
    while not running.done():
        begun = time.thread_time()  # of the event loop alone
        await call("block.read", block_id=block)
        await asyncio.sleep(0)
        longest = max(longest, time.thread_time() - begun)
    assert longest < 0.25
    with raises(ErrorCode.REGEX_TIMEOUT):
        await running


async def test_search_without_kinds_covers_files_only(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    file = await make("needle", kind="file", metadata={"path": "src/a.py"})
    text = await make("needle", role="system")
    answer = await kernel.call(amy, "kernel.search", {"query": "needle"})
    assert [(one["block_id"], one["path"]) for one in answer["results"]] == [(file, "src/a.py")]
    assert await found(kernel, amy, "needle") == [file, text]
    assert await found(kernel, amy, "needle", path_prefix="src/") == [file]
    assert await found(kernel, amy, "needle", path_prefix="SRC/") == []
    assert await found(kernel, amy, "nee", kinds=["thinking"]) == []


async def test_search_finds_buffered_appends(kernel: Kernel, amy: Actor, make: Make) -> None:
    block = await make("")
    await kernel.call(amy, "block.append", {"block_id": block, "text": "need", "stream": True})
    await kernel.call(amy, "block.append", {"block_id": block, "text": "le", "stream": True})
    assert await found(kernel, amy, "needle") == [block]


async def test_contexts_that_are_not_open_are_searched_too(open_kernel: OpenKernel) -> None:
    kernel = await open_kernel()
    amy = kernel.open_session(kernel.owner, "test")
    blocks = []
    for label in ("one", "two"):
        await kernel.create_context(label)
        request = {"context": label, "role": "user", "kind": "file", "content": f"needle {label}"}
        blocks.append((await kernel.call(amy, "block.create", request))["block_id"])
    await kernel.close()
    for _ in range(2):
        kernel = await open_kernel()
        amy = kernel.open_session(kernel.owner, "test")
        assert await found(kernel, amy, "needle") == blocks
        await kernel.close()


async def test_pages_join_without_gaps_and_the_last_says_that_it_is(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    await kernel.create_context("other")
    blocks = [await make(f"needle {n}") for n in range(4)]
    blocks += [await make(f"needle {n}", context="other") for n in range(3)]
    await make("nothing")
    for size in (1, 2, 3, 7, 8):
        if size == 3:
            await kernel.search.wait_indexed()
            await kernel.call(amy, "block.append", {"block_id": blocks[1], "text": "changed"})
        pages: list[str] = []
        after: dict[str, str] = {}
        for _ in range(8):
            answer = await search(kernel, amy, "needle", max_blocks=size, **after)
            pages += [one["block_id"] for one in answer["results"]]
            assert answer["truncated"] == ("next" in answer) == (len(pages) < len(blocks))
            if not answer["truncated"]:
                break
            after = {"after_block": answer["next"]}
        assert pages == blocks


async def test_long_texts_are_found_like_short_ones(kernel: Kernel, amy: Actor, make: Make) -> None:
    long = "x" * 200_000
    blocks = [await make(f"{one}needle") for one in ("", long, "", long)]
    for _ in range(2):
        assert await found(kernel, amy, "needle") == blocks
        await kernel.search.wait_indexed()
    cut = {"block_id": blocks[1], "offset": 0, "delete_count": len(long)}
    await kernel.call(amy, "block.splice", cut)
    await kernel.call(amy, "block.splice", {"block_id": blocks[2], "offset": 0, "insert": long})
    for _ in range(2):
        assert await found(kernel, amy, "needle") == blocks
        assert await found(kernel, amy, "xneedle") == blocks[2:]
        await kernel.search.wait_indexed()


async def test_search_by_index_finds_the_same_as_full_scan(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    """Case that folds, characters that the index does not know, quotes, short and long queries."""
    rng = random.Random(7)

    def text(length: int) -> str:
        return "".join(rng.choice(ALPHABET) for _ in range(length))

    blocks = {await make(content): content for content in (text(60) for _ in range(40))}
    for step in range(70):
        source = rng.choice(list(blocks.values()))
        at = rng.randrange(len(source))
        query = source[at : at + rng.randrange(1, 8)].split("\n")[0] or text(2).strip("\n")
        if step % 10 == 0:
            block = rng.choice(list(blocks))
            new = text(5)
            await kernel.call(amy, "block.splice", {"block_id": block, "offset": 3, "insert": new})
            blocks[block] = blocks[block][:3] + new + blocks[block][3:]
        if not query or "\n" in query:
            continue
        expected = [block for block, content in blocks.items() if query in content]
        assert await found(kernel, amy, query, max_blocks=100) == expected, repr(query)
        if step % 3 == 0:
            await kernel.search.wait_indexed()
            assert await found(kernel, amy, query, max_blocks=100) == expected, repr(query)


async def test_regular_expression_finds_the_same_with_and_without_literals_in_it(
    kernel: Kernel, amy: Actor, make: Make
) -> None:
    blocks = [await make(content) for content in ("def one_test", "def two", "Def one_test", "")]
    for query in ("def \\w+_test", "(?:def) [a-z]+_test"):
        assert await found(kernel, amy, query, regex=True) == blocks[:1]
    assert await found(kernel, amy, "(?i)def \\w+_test", regex=True) == [blocks[0], blocks[2]]


async def listed(kernel: Kernel, actor: Actor, **params: Any) -> list[str]:
    """All pages."""
    found: list[str] = []
    while True:
        page = await kernel.call(actor, "block.list", params)
        found += [one["block_id"] for one in page["blocks"]]
        assert page["truncated"] == ("next" in page)
        if not page["truncated"]:
            return found
        params["after_block"] = page["next"]


async def test_list_filters_hold_alone_and_combined(kernel: Kernel, amy: Actor, make: Make) -> None:
    rng = random.Random(3)
    root = await make("root")
    made: list[tuple[str, dict[str, Any]]] = []
    for number in range(40):
        parent = rng.choice([root] + [block for block, _ in made])
        fields: dict[str, Any] = {
            "role": rng.choice(("user", "model", "tool", "system")),
            "kind": rng.choice(("text", "thinking", "file", "drift", "error")),
            "status": rng.choice(("running", "done")),
        }
        path = rng.choice((None, "src/a.py", "src/b/c.py", "docs/a.md", ""))
        extra = {"metadata": {"path": path}} if path is not None else {}
        given = {name: value for name, value in fields.items() if value != "running"}
        block = await make(str(number), parent_id=parent, **given, **extra)
        made.append((block, {**fields, "path": path, "parent": parent}))
    parents = {block: fields["parent"] for block, fields in made}

    def removes(block: str, above: str) -> int:
        """Generations between the two; 0 if there are none."""
        count = 0
        while block in parents:
            block, count = parents[block], count + 1
            if block == above:
                return count
        return 0

    for _ in range(80):
        wanted: dict[str, Any] = {}
        for name, values in (
            ("role", ("user", "model")),
            ("kind", ("text", "file")),
            ("status", ("pending", "done", "running")),
            ("path_prefix", ("src/", "docs/a.md", "nope", "")),
        ):
            if rng.random() < 0.4:
                wanted[name] = rng.choice(values)
        above, depth = None, 1
        if rng.random() < 0.6:
            above = wanted["parent_id"] = rng.choice([root] + [block for block, _ in made])
            if rng.random() < 0.6:
                depth = wanted["depth"] = rng.randint(1, 5)
        expected = [
            block
            for block, fields in made
            if all(
                fields[one] == wanted[one] for one in ("role", "kind", "status") if one in wanted
            )
            and (
                "path_prefix" not in wanted
                or (fields["path"] is not None and fields["path"].startswith(wanted["path_prefix"]))
            )
            and (above is None or 1 <= removes(block, above) <= depth)
        ]
        found = await listed(kernel, amy, **wanted, limit=rng.choice((1, 4, 100)))
        assert [block for block in found if block != root] == expected, wanted


async def test_pages_hold_every_block_once_while_others_create_blocks(
    call: Caller, make: Make
) -> None:
    rng = random.Random(4)
    await call.kernel.create_context("other")
    there = [await make(str(n), context="other") for n in range(40)]
    found: list[str] = []
    params: dict[str, Any] = {"limit": 3, "context": "other"}
    while True:
        page = await call("block.list", **params)
        found += [one["block_id"] for one in page["blocks"]]
        if not page["truncated"]:
            break
        params = {"limit": 3, "after_block": page["next"]}  # whose context it is
        await make("new", context="other", after=rng.choice(there))
    assert [block for block in found if block in there] == there
    assert len(set(found)) == len(found)


async def test_list_waits_for_disk_so_that_no_block_is_dirty(
    kernel: Kernel, context: Context, amy: Actor, make: Make
) -> None:
    block = await make("a", kind="file", metadata={"path": "a"})
    context.write(amy, "append", lambda: context.document.append(block, "b"), blocks=[block])
    assert context.blocks.persisted[block] == 1
    page = await kernel.call(amy, "block.list", {})
    assert [(one["version"], one["dirty"]) for one in page["blocks"]] == [(2, False)]
    assert context.blocks.persisted[block] == 2


def header(block: str, order: str, parent: str | None) -> BlockHeader:
    return BlockHeader(block, "text", "user", "done", order, "", "amy", parent=parent)


def test_parents_that_run_in_a_circle_are_followed_once() -> None:
    document = Document(1)
    ring = [f"{'0' * 32}.{'1' * 32}.{n}" for n in range(5)]
    for at, block in enumerate(ring):
        document.create_block(header(block, f"a{at}", ring[at - 1]))
    family = BlockTree(document)
    assert family.descendants(ring[0], 1_000_000) == ring[1:]
    assert family.descendants(ring[0], 2) == ring[1:3]


def test_index_of_children_follows_the_document() -> None:
    rng = random.Random(8)
    document = Document(1)
    blocks = [f"{'0' * 32}.{'1' * 32}.{n}" for n in range(200)]
    document.create_block(header(blocks[0], "a0", None))
    family = BlockTree(document)
    assert family.descendants(blocks[0], 3) == []
    for at, block in enumerate(blocks[1:], 1):
        document.create_block(header(block, f"b{at:03}", rng.choice(blocks[:at])))
        document.set_fields(rng.choice(blocks[1 : at + 1]), parent=blocks[0])
    fresh = BlockTree(document)
    for block in blocks:
        for depth in (1, 3):
            assert family.descendants(block, depth) == fresh.descendants(block, depth)
    assert document.header(blocks[0])._replace().parent is None


MESSAGE = {"role": "user", "kind": "text", "content": "hello"}


async def listed_context(kernel: Kernel, actor: Actor, **params: Any) -> dict[str, Any]:
    """The default context as the list says it."""
    result = await kernel.call(actor, "context.list", params)
    found: dict[str, Any] = result["contexts"][0]
    return found


async def test_list_counts_blocks_that_others_have_changed_since_the_seen_version(
    kernel: Kernel, amy: Actor
) -> None:
    ben = kernel.open_session(await kernel.principal("ben"), "test")
    await kernel.call(amy, "block.create", MESSAGE)
    block = (await kernel.call(ben, "block.create", MESSAGE))["block_id"]
    before = await listed_context(kernel, amy)
    assert before["context_version"] == (await kernel.context()).seq
    assert "changed" not in before
    assert (await listed_context(kernel, amy, seen={}))["changed"] == 1
    seen = {before["context_id"]: before["context_version"]}
    assert (await listed_context(kernel, amy, seen=seen))["changed"] == 0
    for _ in range(3):
        await kernel.call(ben, "block.append", {"block_id": block, "text": " more"})
    await kernel.call(ben, "block.create", MESSAGE)
    assert (await listed_context(kernel, amy, seen=seen))["changed"] == 2
    assert (await listed_context(kernel, ben, seen=seen))["changed"] == 0


async def test_list_counts_no_blocks_that_a_fork_has_only_copied(
    kernel: Kernel, amy: Actor
) -> None:
    ben = kernel.open_session(await kernel.principal("ben"), "test")
    await kernel.call(ben, "block.create", MESSAGE)
    await kernel.call(ben, "block.create", MESSAGE)
    await kernel.call(ben, "context.fork", {"context": "default", "label": "copy"})

    async def changed() -> int:
        result = await kernel.call(amy, "context.list", {"seen": {}})
        return next(int(one["changed"]) for one in result["contexts"] if one["label"] == "copy")

    assert await changed() == 0
    await kernel.call(ben, "block.create", {**MESSAGE, "context": "copy"})
    assert await changed() == 1


@pytest.mark.sqlite
async def test_list_names_a_context_as_damaged_whose_record_cannot_be_read(
    kernel: Kernel, amy: Actor, data: Path, open_kernel: Any
) -> None:
    ben = kernel.open_session(await kernel.principal("ben"), "test")
    await kernel.call(ben, "block.create", MESSAGE)
    await kernel.close()
    with sqlite3.connect(data / "journal.db") as database:
        assert database.execute("UPDATE ops SET blocks = 'x' WHERE seq > 1").rowcount
    again: Kernel = await open_kernel()
    found = await listed_context(again, again.open_session(again.owner, "test"), seen={})
    assert "damaged" in found and "changed" not in found
