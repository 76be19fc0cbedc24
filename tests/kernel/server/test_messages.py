"""Messages over HTTP: read, appended and edited, with each check in its turn."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kernel.served import ServedKernel
from tests.kernel.server.test_rpc import Answered, answered

TEXT = [{"type": "text", "text": "And then?"}]
CALL = [{"type": "tool-use", "id": "c1", "name": "calc", "parameters": {}}]


async def request(served: ServedKernel, method: str, path: str, body: object = None) -> Answered:
    sent = b"" if body is None else json.dumps(body).encode()
    return await answered(served, method, path, sent, Authorization=f"Bearer {served.doors.token}")


@pytest.fixture
async def first(served: ServedKernel) -> str:
    return await served.block("Hello", status="done")


async def test_messages_are_read_appended_and_edited(served: ServedKernel, first: str) -> None:
    for content in ("And then?", TEXT):
        made = await request(served, "POST", f"/messages/{first}/append", {"content": content})
        assert (made.status, made.body["label"]) == (200, "default")
    edited = await request(served, "PUT", f"/messages/{first}/content", {"content": "Hallo"})
    assert (edited.status, edited.body["forked"]) == (200, True)
    paths = [
        "/messages",
        f"/messages?context={edited.body['label']}",
        f"/messages/{first}/path",
        f"/messages/{first}/children",
        f"/messages/{first}/siblings",
    ]
    texts = []
    for path in paths:
        found = await request(served, "GET", path)
        assert found.status == 200
        texts.append([one["message"]["content"][0]["text"] for one in found.body["messages"]])
    both = ["Hello", "And then?"]
    assert texts == [both, ["Hallo"], both[:1], both[1:], ["Hello", "Hallo"]]


@pytest.mark.parametrize("path", ["/messages/{}/append", "/messages/{}/content"])
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "invalid_params"),
        ({"content": None}, 400, "invalid_params"),
        ({"content": 7}, 400, "invalid_params"),
        ({"content": "  "}, 400, "invalid_params"),
        ({"content": []}, 400, "invalid_params"),
        ({"content": CALL}, 400, "invalid_params"),
        ({"content": [{"type": "video"}]}, 400, "invalid_params"),
        ({"content": TEXT, "role": "assistant"}, 400, "invalid_params"),
        ({"content": TEXT}, 404, "block_not_found"),
    ],
)
async def test_content_is_checked_before_a_missing_message_is_404(
    served: ServedKernel, path: str, body: dict[str, Any], status: int, code: str
) -> None:
    method = "POST" if path.endswith("append") else "PUT"
    found = await request(served, method, path.format("default.amy.99"), body)
    assert (found.status, found.body["error"]["code"]) == (status, code)


async def test_body_that_is_no_json_and_wrong_methods_are_refused(
    served: ServedKernel, first: str
) -> None:
    headers = {"Authorization": f"Bearer {served.doors.token}"}
    path = f"/messages/{first}/append"
    broken = await answered(served, "POST", path, b"{", **headers)
    assert (broken.status, broken.body["error"]["code"]) == (400, "invalid_json")
    assert (await request(served, "GET", path)).status == 405
    assert (await answered(served, "POST", path, b"{}")).status == 401


async def test_message_is_named_by_a_path_of_the_layout(served: ServedKernel, first: str) -> None:
    shown = (await served.call("context.layout"))["items"]
    path = next(one["path"] for one in shown if one["block_id"] == first and "path" in one)
    for name in (path, f"default/{path}", f"default%2F{path}"):
        found = await request(served, "GET", f"/messages/{name}/path")
        assert (found.status, found.body["messages"][0]["message_id"]) == (200, first)
    edited = await request(served, "PUT", f"/messages/default/{path}/content", {"content": "Hello"})
    assert (edited.status, edited.body["message_id"]) == (200, first)


@pytest.mark.parametrize("path", ["/{}/path?message=default.amy.2", "?context=default&context=x"])
async def test_parameter_that_is_named_twice_is_refused(
    served: ServedKernel, first: str, path: str
) -> None:
    found = await request(served, "GET", "/messages" + path.format(first))
    assert (found.status, found.body["error"]["code"]) == (400, "invalid_params")


async def test_messages_are_read_page_by_page(served: ServedKernel, first: str) -> None:
    await request(served, "POST", f"/messages/{first}/append", {"content": "And then?"})
    page = await request(served, "GET", "/messages?limit=1")
    assert (len(page.body["messages"]), page.body["truncated"]) == (1, True)
    rest = await request(served, "GET", f"/messages?after_message={page.body['next']}")
    assert [one["message"]["content"] for one in rest.body["messages"]] == [TEXT]
    for limit in ("0", "many", "9" * 30):
        assert (await request(served, "GET", f"/messages?limit={limit}")).status == 400
