"""Tools as models are offered them: schemas, this context, versions, results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from antiphon_kernel.messages import ModelWindow
from antiphon_kernel.providers import ModelConfig, ModelKind
from antiphon_kernel.turns.model_tools import SMALL_SET, ModelTools, tools_of
from antiphon_kernel.turns.prompt_reading import instruction_tokens
from antiphon_kernel.types.enums import BlockKind
from antiphon_kernel.types.frozen_json import thaw
from antiphon_kernel.types.roles import AccessRole
from tests.kernel.turns.stage import DONE, OpenStage, Replying, Stage, call, remote, replying


def replace_line(text: str) -> dict[str, Any]:
    return {"op": "replace", "start_line": 1, "end_line": 2, "content": text}


def every_key(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            yield key
            yield from every_key(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from every_key(value)


@pytest.fixture
def provider() -> Replying:
    return Replying(DONE)


@pytest.fixture
async def stage(open_stage: OpenStage, provider: Replying) -> Stage:
    return await open_stage(remote(provider))


async def test_definitions_have_names_and_schemas_that_services_take(stage: Stage) -> None:
    tools = ModelTools(stage.kernel, stage.context, None).definitions
    names = [one.name for one in tools]
    assert len(names) == len(set(names))
    assert {"block_read", "block_edit", "block_create", "source_add", "shell"} <= set(names)
    for one in tools:
        assert one.name.replace("_", "").isalpha()
        assert one.description.strip()
        schema = thaw(one.parameters)
        assert schema["type"] == "object"
        assert not {"$ref", "$defs", "oneOf", "discriminator"} & set(every_key(schema))
    edit = next(thaw(one.parameters) for one in tools if one.name == "block_edit")
    assert edit["required"] == ["block_id", "operations"]
    operation = edit["properties"]["operations"]["items"]
    assert operation["required"] == ["start_line", "end_line", "content"]


@pytest.mark.parametrize(
    ("window", "expected", "most"),
    [
        (None, None, 3_000),
        (ModelWindow(128_000, 4_096), None, 3_000),
        (ModelWindow(16_000, 2_000), None, 3_000),
        (ModelWindow(15_999, 2_000), SMALL_SET, 1_000),
        (ModelWindow(200_000, 2_000, total=8_000), SMALL_SET, 1_000),
        (ModelWindow(4_000, 1_000), SMALL_SET, 1_000),
        (ModelWindow(3_999, 1_000), (), 0),
    ],
)
def test_tools_of_a_model_fit_its_window(
    stage: Stage, window: ModelWindow | None, expected: Sequence[str] | None, most: int
) -> None:
    config = ModelConfig("aria", ModelKind.OPENAI, "x", window=window)
    assert tools_of(config) == expected
    assert tools_of(replace(config, tools=("block_get",))) == ("block_get",)
    definitions = ModelTools(stage.kernel, stage.context, None, expected).definitions
    assert expected is None or {one.name for one in definitions} == set(expected)
    assert instruction_tokens("", definitions) <= most


@pytest.mark.parametrize(("window", "tools"), [(8_000, 6), (6_000, 6), (3_000, 0)])
async def test_model_with_a_small_window_is_asked(
    open_stage: OpenStage, window: int, tools: int
) -> None:
    stage, provider = await replying(open_stage, DONE, window=ModelWindow(window, 1_000))
    await stage.play("Hello")
    assert not stage.of_kind(BlockKind.ERROR)
    assert [len(prompt.tools) for prompt in provider.prompts] == [tools]


async def test_operation_of_an_edit_inserts_deletes_and_replaces(
    stage: Stage, provider: Replying
) -> None:
    note = await stage.play("a\nb\nc\n")
    operations = [
        {"start_line": 0, "end_line": 0, "content": "above"},
        {"start_line": 0, "end_line": 1, "content": ""},
        {"start_line": 2, "end_line": 3, "content": "C\nd", "expected_text": "c\n"},
    ]
    edit = {"block_id": await stage.path(note), "operations": operations}
    provider.then([call("block_edit", **edit)], DONE)
    await stage.play("Edit.")
    assert stage.text(note) == "above\nb\nC\nd\n"


async def test_tool_that_the_model_may_not_call_is_no_tool(open_stage: OpenStage) -> None:
    provider = Replying([call("shell", command="touch ran")], DONE)
    stage = await open_stage(remote(provider, tools=("block_read",)))
    await stage.play("Go.")
    assert "There is no tool 'shell'; there are: block_read" in stage.results()[0]
    assert not (stage.kernel.project / "ran").exists()


async def test_block_is_read_with_path_version_and_line_numbers(
    stage: Stage, provider: Replying
) -> None:
    note = await stage.play("one\ntwo")
    path = await stage.path(note)
    provider.then([call("block_read", block_id=path, range={"start": 1, "end": 2})], DONE)
    await stage.play("Read.")
    version = stage.context.blocks.version(note)
    assert stage.results() == [f"path: {path}\nversion: {version}\nlines: 2\n\n1\ttwo"]


async def test_block_is_edited_at_the_version_that_was_read_or_shown_as_it_stands(
    stage: Stage, provider: Replying
) -> None:
    note = await stage.play("a\nb\nc\n")
    path, version = await stage.path(note), stage.context.blocks.version(note)
    await stage.call("block.splice", block_id=note, offset=0, insert="above\n")
    edit = {"block_id": path, "base_version": version, "operations": [replace_line("B")]}
    provider.then([call("block_edit", **edit)], DONE)
    await stage.play("Edit.")
    assert stage.text(note) == "above\na\nB\nc\n"
    edit["base_version"] = stage.context.blocks.version(note)
    await stage.call("block.splice", block_id=note, offset=6, delete_count=1, insert="A by amy")
    provider.then([call("block_edit", **edit)], DONE)
    await stage.play("Edit.")
    result = stage.results()[-1]
    assert result.startswith("stale_version: ")
    assert "\n1\tA by amy\n" in result
    assert f'"version": {stage.context.blocks.version(note)}' in result
    assert "A by amy" in stage.text(note)


async def test_created_block_is_the_models_and_hangs_on_the_prompt(
    stage: Stage, provider: Replying
) -> None:
    provider.then([call("block_create", content="A plan.")], DONE)
    prompt = await stage.play("Plan.")
    plan = next(one for one in stage.headers() if stage.text(one) == "A plan.")
    aria = (await stage.kernel.principal("aria")).id
    assert (plan.parent, plan.author, plan.status, plan.role) == (prompt, aria, "done", "model")


async def test_paths_and_contexts_mean_the_context_of_the_turn(
    stage: Stage, provider: Replying
) -> None:
    other = (await stage.call("context.create", label="other"))["context_id"]
    new = {"context": other, "kind": "text", "role": "user", "content": "here", "status": "done"}
    note = (await stage.call("block.create", **new))["block_id"]
    await stage.runner.wait_idle()
    items = (await stage.call("context.layout", context=other))["items"]
    path = next(one["path"] for one in items if one["block_id"] == note and "path" in one)
    provider.then([call("block_read", "r", block_id=path), call("block_list", "l")], DONE)
    await stage.call("block.create", **{**new, "content": "Read."})
    await stage.runner.wait_idle()
    document = (await stage.kernel.context("other")).document
    results = [
        document.text(block)
        for block in document.block_ids()
        if document.header(block).kind == BlockKind.TOOL_RESULT
    ]
    assert results[0].endswith("\n0\there")
    assert note in results[1]
    assert stage.context.id not in results[1]


async def test_calls_that_only_read_run_side_by_side(
    stage: Stage, provider: Replying, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, most = 0, 0
    found = ModelTools.run

    async def run(self: ModelTools, *args: Any) -> str:
        nonlocal together, most
        together += 1
        most = max(most, together)
        answer = await found(self, *args)
        together -= 1
        return answer

    monkeypatch.setattr(ModelTools, "run", run)
    provider.then([call("context_list", "a"), call("block_list", "b")], DONE)
    await stage.play("Read.")
    assert most == 2
    provider.then(
        [call("block_list", "a"), call("block_create", "b", content="x"), call("block_list", "c")],
        DONE,
    )
    most = 0
    await stage.play("Write.")
    assert most == 1
    listed = stage.results()[-1]
    assert stage.of_kind(BlockKind.TOOL_RESULT)[-1].status == "done"
    assert '"summary": "x"' in listed


async def test_call_is_not_run_for_somebody_who_may_only_read_by_then(
    stage: Stage, provider: Replying
) -> None:
    bo = await stage.actor("bo")

    async def demote() -> None:
        await stage.kernel.members.give_role(bo.principal, AccessRole.VIEWER)

    provider.then([demote, call("block_create", content="x")], DONE)
    await stage.play("Write.", bo)
    assert "bo, a viewer" in stage.results()[0]
    assert not [one for one in stage.headers() if stage.text(one) == "x"]
