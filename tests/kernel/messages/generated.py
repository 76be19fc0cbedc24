"""Random messages, JSON and paths for the property tests."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from antiphon_kernel.messages import (
    AssistantMessage,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    InputBlock,
    Message,
    TextBlock,
    Thinking,
    ToolMessage,
    ToolUse,
    UnknownBlock,
    UserMessage,
)
from antiphon_kernel.types.frozen_json import JsonObject

EXAMPLES = settings(max_examples=int(os.environ.get("ANTIPHON_CASES", "15")))

CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = st.sampled_from(["", "  ", "\n\n", "a", " b ", "c\n"]) | st.text(CHARACTERS, max_size=6)
NAMES = st.sampled_from(["calc", "read", "x"])
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.integers(-(10**300), 10**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=3)
FROZEN = OBJECTS.map(JsonObject)
HASHES = st.sampled_from(["0" * 64, "ab" * 32])
TEXT_BLOCKS = TEXTS.map(TextBlock)
INPUT_BLOCKS: st.SearchStrategy[InputBlock] = st.one_of(
    TEXT_BLOCKS,
    TEXT_BLOCKS,
    st.builds(ImageBlock, st.just("image/png"), HASHES),
    st.builds(DocumentBlock, st.just("application/pdf"), HASHES),
    FROZEN.map(UnknownBlock),
)
CALL_IDS = st.sampled_from(["c1", "c2", "c3", "c4"])
BLOCKS: st.SearchStrategy[ContentBlock] = st.one_of(
    INPUT_BLOCKS,
    st.builds(Thinking, TEXTS, st.none() | TEXTS),
    st.builds(ToolUse, CALL_IDS, NAMES, FROZEN),
)


def contents(blocks: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(blocks, min_size=1, max_size=4).map(tuple)


MESSAGES: st.SearchStrategy[Message] = st.one_of(
    contents(INPUT_BLOCKS).map(UserMessage),
    contents(TEXT_BLOCKS).map(UserMessage),
    contents(BLOCKS).map(AssistantMessage),
    contents(TEXT_BLOCKS).map(AssistantMessage),
    st.builds(ToolMessage, contents(INPUT_BLOCKS), CALL_IDS, st.booleans()),
)
PATHS = st.lists(MESSAGES, max_size=8)

LEGACY_CALLS = st.fixed_dictionaries(
    {
        "id": CALL_IDS | TEXTS,
        "type": st.just("function"),
        "function": st.fixed_dictionaries(
            {
                "name": NAMES | TEXTS,
                "arguments": st.sampled_from(["", "  ", "{}", '{"a": [1, 2]}', "[1]", "null", "x"]),
            }
        ),
    }
)
LEGACY: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"role": st.just("user"), "content": st.none() | TEXTS}),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": st.none() | TEXTS},
        optional={"tool_calls": st.lists(LEGACY_CALLS, max_size=3)},
    ),
    st.fixed_dictionaries(
        {"role": st.just("tool"), "content": st.none() | TEXTS, "tool_call_id": CALL_IDS | TEXTS}
    ),
)
ANYTHING = st.one_of(
    LEGACY,
    JSON,
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "tool", "system"]) | JSON,
            "content": st.lists(OBJECTS | JSON, max_size=3) | JSON,
        },
        optional={"tool_calls": JSON, "tool_call_id": JSON, "is_error": JSON, "name": JSON},
    ),
)
"""JSON of which most is no message."""
