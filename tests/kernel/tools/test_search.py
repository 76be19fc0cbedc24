"""`block.search` and `kernel.search` find what is there, wherever and whenever it was written."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.records import Actor
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


@pytest.mark.parametrize("tool", ["block.search", "kernel.search"])
async def test_regular_expression_that_is_bad_or_runs_away_is_an_error(
    kernel: Kernel, amy: Actor, make: Make, tool: str
) -> None:
    block = await make("a" * 60 + "!", kind="file")
    extra = {"block_id": block} if tool == "block.search" else {}
    error = await refused(kernel, amy, tool, {"query": "(a", "regex": True, **extra})
    assert error.code is ErrorCode.INVALID_REGEX
    error = await refused(kernel, amy, tool, {"query": "(a|aa)+$", "regex": True, **extra})
    assert error.code is ErrorCode.REGEX_TIMEOUT
    error = await refused(kernel, amy, tool, {"query": "x" * 1_001, **extra})
    assert error.code is ErrorCode.TOO_LARGE
    error = await refused(kernel, amy, tool, {"query": "a\nb", **extra})
    assert error.code is ErrorCode.INVALID_PARAMS


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
    with pytest.raises(AntiphonError):
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


async def test_search_index_skips_unchanged_blocks(
    kernel: Kernel, call: Caller, make: Make
) -> None:
    async def changed() -> list[str]:
        return [block for _, block in (await kernel.search.changes()).blocks.values()]

    block, other = await make("needle"), await make("other")
    assert await changed() == [block, other]
    await kernel.search.wait_indexed()
    assert await changed() == []
    await call("block.splice", block_id=other, offset=0, insert="x")
    assert await changed() == [other]


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
    for step in range(150):
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
