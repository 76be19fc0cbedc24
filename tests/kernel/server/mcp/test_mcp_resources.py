"""Blocks as resources of the MCP server, and what programs hear of them, in both eras."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

import pytest
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import ResourceUpdatedNotification

from antiphon_kernel.server.mcp import service
from antiphon_kernel.subscriptions import Subscription
from tests.kernel.served import ServedKernel
from tests.kernel.server.invited import invite
from tests.kernel.server.mcp.clients import ERAS, LEGACY, MODERN, connected
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.filterwarnings("ignore:resources.* is removed as of 2026-07-28")


def subscriptions() -> set[Subscription]:
    """Return those that are open, also in kernels of other tests."""
    return {one for one in gc.get_objects() if type(one) is Subscription and not one.ended}


@pytest.fixture
def before() -> set[Subscription]:
    """Subscriptions of other tests."""
    return subscriptions()


@pytest.mark.parametrize("era", ERAS)
async def test_blocks_of_all_contexts_are_listed_and_read_by_their_uris(
    era: str, served: ServedKernel
) -> None:
    block = await served.block("# One\ntext", kind="text", status="done")
    await served.call("context.create", label="empty")
    await served.call("context.create", label="notes")
    for number in range(101):
        await served.block(f"Note {number}.", kind="text", status="done", context="notes")
    viewer = (await invite(served, "viewer"))["token"]
    async with connected(served, era, token=viewer) as client:
        pages, found, cursor = 0, list[Any](), None
        while pages == 0 or cursor is not None:
            page = await client.list_resources(cursor=cursor)
            pages, found, cursor = pages + 1, found + page.resources, page.next_cursor
        assert pages == 4
        uris = [one.uri for one in found]
        assert uris[:2] == ["antiphon://default/amy.1", "antiphon://notes/amy.1"]
        assert len(set(uris)) == 102
        assert (found[0].title, found[0].description) == ("# One", "text of amy")
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == ["antiphon://{context}/{+block}"]
        (read,) = (await client.read_resource("antiphon://default/amy.1")).contents
        assert (read.uri, read.text) == ("antiphon://default/amy.1", "# One\ntext")  # type: ignore[union-attr]
        layout = await served.call("context.layout")
        path = layout["items"][1]["path"]
        assert layout["items"][1]["block_id"] == block
        assert (await client.read_resource(f"antiphon://default/{path}")).contents
        for wrong in (
            *("antiphon://default/amy.9", "antiphon://nowhere/amy.1", "antiphon://default/"),
            *("antiphon://default", "file:///etc/passwd", f"antiphon://notes/{block}", ""),
        ):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(wrong)
            assert refused.value.error.code == -32602, wrong
        with pytest.raises(MCPError, match="Unknown cursor"):
            await client.list_resources(cursor="nothing")


async def test_session_hears_of_changes_of_what_it_has_subscribed_to(
    served: ServedKernel, before: set[Subscription]
) -> None:
    await served.block("one", kind="text", status="done")
    other = await served.block("two", kind="text", status="done")
    heard: asyncio.Queue[Any] = asyncio.Queue()
    viewer = (await invite(served, "viewer"))["token"]
    async with connected(served, LEGACY, token=viewer, heard=heard) as client:
        with pytest.raises(MCPError, match="block_not_found"):
            await client.subscribe_resource("antiphon://default/amy.9")
        await client.subscribe_resource("antiphon://default/amy.1")
        await client.subscribe_resource("antiphon://default/amy.1")
        await client.subscribe_resource("antiphon://default/amy.2")
        began = time.monotonic()
        for _ in range(20):
            await served.call("block.splice", block_id="default.amy.1", offset=0, insert="x")
        update = await asyncio.wait_for(heard.get(), PATIENCE)
        assert isinstance(update, ResourceUpdatedNotification)
        assert update.params.uri == "antiphon://default/amy.1"
        await client.unsubscribe_resource("antiphon://default/amy.1")
        await client.unsubscribe_resource("antiphon://default/amy.1")
        await served.call("block.splice", block_id="default.amy.1", offset=0, insert="x")
        await served.call("block.splice", block_id=other, offset=0, insert="x")
        uris = []
        while "antiphon://default/amy.2" not in uris:
            uris.append((await asyncio.wait_for(heard.get(), PATIENCE)).params.uri)
        pauses = (time.monotonic() - began) / service._PAUSE_SECONDS  # noqa: SLF001
        assert len(uris) < 5 + pauses, "many changes in a row are told at once"
    await until(lambda: subscriptions() <= before, "the session's are ended")


async def test_listener_hears_of_changes_for_as_long_as_it_listens(
    served: ServedKernel, before: set[Subscription]
) -> None:
    block = await served.block("one", kind="text", status="done")
    uri, unknown = "antiphon://default/amy.1", "antiphon://default/amy.9"
    viewer = (await invite(served, "viewer"))["token"]
    async with connected(served, MODERN, token=viewer) as client:
        wanted = [uri, unknown, "file:///etc/passwd"]
        async with (
            client.listen(tools_list_changed=True) as empty,
            client.listen(resource_subscriptions=wanted, tools_list_changed=True) as stream,
        ):
            nothing = asyncio.ensure_future(anext(empty))
            assert stream.honored.resource_subscriptions == [uri]
            assert not stream.honored.tools_list_changed
            await served.call("block.splice", block_id=block, offset=0, insert="x")
            async with asyncio.timeout(PATIENCE):
                assert await anext(stream) == ResourceUpdated(uri=uri)
            assert not nothing.done()
            nothing.cancel()
        await until(lambda: subscriptions() <= before, "the subscription is ended")


@pytest.mark.parametrize("era", ERAS)
async def test_kicked_listener_hears_nothing_more(
    era: str, served: ServedKernel, before: set[Subscription]
) -> None:
    block = await served.block("one", kind="text", status="done")
    token = (await invite(served, "editor", name="cy"))["token"]
    heard: asyncio.Queue[Any] = asyncio.Queue()
    async with connected(served, era, token=token, heard=heard) as client:
        stream = None
        if era == LEGACY:
            await client.subscribe_resource("antiphon://default/amy.1")
        else:
            listening = client.listen(resource_subscriptions=["antiphon://default/amy.1"])
            stream = await listening.__aenter__()
        await served.call("kernel.kick", principal="cy")
        assert subscriptions() <= before
        await served.call("block.splice", block_id=block, offset=0, insert="x")
        with pytest.raises(MCPError):
            await client.read_resource("antiphon://default/amy.1")
        if stream is not None:
            with pytest.raises(SubscriptionLost):
                await anext(stream)
    assert heard.empty()


async def test_kernel_ends_at_once_though_programs_listen(served: ServedKernel) -> None:
    await served.block("one", kind="text", status="done")
    async with connected(served, MODERN) as client, connected(served, LEGACY) as other:
        await other.subscribe_resource("antiphon://default/amy.1")
        async with (
            client.listen(tools_list_changed=True),
            client.listen(resource_subscriptions=["antiphon://default/amy.1"]) as stream,
        ):
            started = asyncio.get_running_loop().time()
            await served.stop()
            assert asyncio.get_running_loop().time() - started < 1.5
            assert [event async for event in stream] == []
            await served.start()
