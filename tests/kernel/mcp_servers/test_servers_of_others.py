"""MCP servers that others have made: every kind of content, progress, questions, changed lists."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from antiphon_kernel.mcp_servers import McpServerConfig
from antiphon_kernel.turns.prompt_reading import instruction_tokens
from antiphon_kernel.types.enums import BlockKind
from tests.kernel.mcp_servers.served_stage import ServedStage
from tests.programs import program
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ServedStage]:
    folder = tmp_path_factory.mktemp("served")
    node = str(program("node"))
    every = McpServerConfig("every", (node, str(program("mcp-server-everything"))))
    files = McpServerConfig("files", (node, str(program("mcp-server-filesystem")), str(folder)))
    opened = await ServedStage.open(folder, every, files)
    await opened.runner.servers.ready(None, 60)
    yield opened
    await opened.close()


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("echo", {"message": "hi"}, "Echo: hi"),
        ("get-sum", {"a": 2, "b": 3}, "The sum of 2 and 3 is 5."),
        ("get-structured-content", {"location": "Chicago"}, '"conditions":"Light rain / drizzle"'),
        ("get-resource-links", {"count": 1}, "[resource Blob Resource 1 | demo://resource/dynamic"),
        ("get-resource-reference", {"resourceType": "Text"}, "Resource 1: This is a plaintext"),
        ("get-resource-reference", {"resourceType": "Blob"}, "Resource 1: This is a base64 blob"),
        ("get-annotated-message", {"messageType": "error"}, "Error: Operation failed"),
        ("get-roots-list", {}, "file:///"),
        ("echo", {}, "every__echo does not take that: 'message' is a required property"),
    ],
)
async def test_content_is_read(
    stage: ServedStage, tool: str, arguments: dict[str, object], said: str
) -> None:
    assert said in await stage.run(f"every__{tool}", **arguments)


async def test_image_is_given_to_the_model(stage: ServedStage) -> None:
    await stage.run("every__get-tiny-image")
    text, image = stage.of_kind(BlockKind.TOOL_RESULT)[-2:]
    assert "[image: result-1.png]" in stage.text(text)
    assert (image.path, image.media_type, image.parent) == (
        "result-1.png",
        "image/png",
        stage.last_call().id,
    )
    prompt = stage.provider.prompts[-1]
    assert prompt.files[str(image.blob)].startswith(b"\x89PNG")
    assert str(image.blob) in str(prompt.conversation.messages[-2])


async def test_error_of_a_tool_is_its_result(stage: ServedStage) -> None:
    result = await stage.run("files__read_text_file", path="/no/such/file")
    assert "Access denied" in result
    assert stage.last_call().is_error


async def test_file_is_read_and_written(stage: ServedStage) -> None:
    path = stage.kernel.project / "note.txt"
    await stage.run("files__write_file", path=str(path), content="Written by a tool.\n")
    assert path.read_text() == "Written by a tool.\n"
    assert await stage.run("files__read_text_file", path=str(path)) == "Written by a tool.\n"


async def test_progress_is_shown(stage: ServedStage) -> None:
    await stage.begin("every__trigger-long-running-operation", duration=2, steps=4)
    await until(lambda: stage.results()[-1] == "[2 of 4]")
    await stage.runner.wait_idle()
    assert stage.results()[-1].startswith("Long running operation completed. Duration: 2")


async def test_form_is_answered(stage: ServedStage) -> None:
    await stage.begin("every__trigger-elicitation-request")
    block = await stage.asked()
    fields = {one["name"]: one for one in stage.last_call().metadata["question"]["fields"]}
    assert fields["titledSingleSelectEnum"]["options"][0] == ["hero-1", "Superman"]
    assert fields["titledMultipleSelectEnum"]["type"] == "array"
    assert fields["integer"]["default"] == 42
    content = {"name": "amy", "check": True, "untitledMultipleSelectEnum": ["Piano"]}
    await stage.call("elicitation.answer", block_id=block, action="accept", content=content)
    await stage.runner.wait_idle()
    assert "Name: amy" in stage.results()[-1]


async def test_address_is_shown_and_asked_about(stage: ServedStage) -> None:
    url = "https://example.org/pay"
    await stage.begin("every__trigger-url-elicitation", url=url)
    block = await stage.asked()
    assert stage.last_call().metadata["question"]["url"] == url
    await stage.call("elicitation.answer", block_id=block, action="accept")
    await stage.runner.wait_idle()
    assert "User completed the URL" in stage.results()[-1]


async def test_list_that_grew_after_the_start_is_told(stage: ServedStage) -> None:
    await stage.run("every__echo", message="x")
    assert "every__trigger-elicitation-request" in stage.told(), "added once we said what we can"
    prompt, here = stage.provider.prompts[-1], await stage.call("context.model")
    assert here["instruction_tokens"] == instruction_tokens(prompt.system, prompt.tools)
