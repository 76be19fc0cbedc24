"""Token estimate: its error over the corpus, its rules, its calibration, the clamp."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon_kernel.messages import (
    AssistantMessage,
    Calibration,
    DocumentBlock,
    ImageBlock,
    ModelWindow,
    TextBlock,
    ToolUse,
    UserMessage,
    clamp_max_tokens,
    estimate_message,
    estimate_text,
    estimate_tools,
    pages_metadata,
    stated_pages,
)
from antiphon_kernel.messages.tokens import estimate_json
from antiphon_kernel.types.frozen_json import JsonObject
from tests.kernel.messages.generated import EXAMPLES, JSON
from tests.kernel.messages.token_errors import (
    FITTED,
    LANGUAGES,
    OTHER,
    measure,
    measure_calibrated,
)

TEXTS = st.text(st.sampled_from("aB3. \n-ü漢字🎉") | st.characters(exclude_categories=["Cs"]))
HASH = "0" * 64


@pytest.mark.parametrize("language", LANGUAGES)
def test_mean_error_over_the_corpus_is_at_most_an_eighth(language: str) -> None:
    allowed = 0.25 if language == "emoji" else 0.125
    assert measure(FITTED, language).mean < allowed
    assert abs(measure(FITTED, language).bias) < 0.1


@pytest.mark.parametrize("language", LANGUAGES)
def test_calibrated_estimate_of_another_tokenizer_comes_close(language: str) -> None:
    estimated, true = measure_calibrated(OTHER, language).pairs[-1]
    assert abs(estimated / true - 1) < 0.1


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("Привет, как твои дела сегодня?", 7, 16),
        ("こんにちは、元気ですか。", 5, 16),
        ("안녕하세요, 오늘은 어떠세요?", 7, 22),
        ("مرحبا، كيف حالك اليوم؟", 6, 20),
        ("नमस्ते, आप कैसे हैं?", 6, 24),
        ("สวัสดีครับ วันนี้เป็นอย่างไรบ้าง", 9, 36),
        ("9f3a1c0b7d5e2846aa01" * 3, 30, 64),
        ("=" * 80, 1, 8),
    ],
)
def test_estimate_of_other_scripts_is_plausible(text: str, least: int, most: int) -> None:
    assert least <= estimate_text(text) <= most


def test_estimate_of_nothing_is_0() -> None:
    assert estimate_text("") == 0
    assert estimate_text(" ") == 1


@EXAMPLES
@given(TEXTS, TEXTS)
def test_estimate_of_two_texts_is_about_that_of_both(one: str, other: str) -> None:
    together, apart = estimate_text(one + other), estimate_text(one) + estimate_text(other)
    assert apart - 4 <= together <= apart + 2


def test_tool_use_costs_at_least_its_json() -> None:
    parameters = JsonObject({"path": "src/main.py", "lines": [1, 2, 3]})
    message = AssistantMessage((ToolUse("c1", "read", parameters),))
    assert estimate_message(message) > estimate_json(parameters) > 10


def test_tools_count_as_input() -> None:
    schema = JsonObject({"name": "read", "description": "Read a file.", "input_schema": {}})
    assert estimate_tools([schema]) > estimate_json(schema)


def test_document_costs_by_its_pages_and_an_image_more_than_a_sentence() -> None:
    document = UserMessage((DocumentBlock("application/pdf", HASH),))
    one, three = (estimate_message(document, {HASH: pages}) for pages in (1, 3))
    contents = TextBlock("Look."), ImageBlock("image/png", HASH)
    text, image = (estimate_message(UserMessage((one,))) for one in contents)
    assert text < image < one < three < estimate_message(document)


@pytest.mark.parametrize(
    ("data", "pages"),
    [
        (b"%PDF-1.7\n<</Type/Pages/Count 2>> <</Type /Page>> <</Type/Page/Parent 1 0 R>>", 2),
        (b"%PDF-1.7 <<compressed>>", None),
        (b"a text with /Type/Page", None),
        (b"", None),
    ],
)
def test_pages_of_a_file_are_those_that_its_bytes_say(data: bytes, pages: int | None) -> None:
    assert stated_pages(pages_metadata(data)) == pages


@EXAMPLES
@given(st.dictionaries(st.just("pages"), JSON) | JSON)
def test_pages_that_somebody_has_written_are_positive_or_none(value: Any) -> None:
    pages = stated_pages({"file_size": value})
    assert pages is None or pages > 0


@EXAMPLES
@given(st.floats(0.3, 3.5), st.integers(100, 100_000))
def test_calibration_comes_to_what_is_reported_again_and_again(ratio: float, size: int) -> None:
    calibration = Calibration()
    for _ in range(60):
        calibration = calibration.updated(size, round(size * ratio))
    assert calibration.apply(size) == pytest.approx(size * ratio, rel=0.02, abs=2)


@EXAMPLES
@given(st.lists(st.tuples(st.integers(-5, 10**6), st.integers(-5, 10**9)), max_size=20))
def test_calibration_stays_within_bounds_whatever_is_reported(
    reports: list[tuple[int, int]],
) -> None:
    calibration = Calibration()
    for estimated, reported in reports:
        calibration = calibration.updated(estimated, reported)
    assert 0.25 <= calibration.factor <= 4


def test_calibration_without_a_report_is_the_same() -> None:
    calibration = Calibration().updated(100, 150)
    assert calibration.updated(100, 0) is calibration
    assert Calibration().apply(123) == 123


CLAMPED = {
    "(40, 100/50, 90) is 10": (40, ModelWindow(100, 50), 90, 10),
    "(20, the same, 150) is 1": (20, ModelWindow(100, 50), 150, 1),
    "(100000, unknown, 1000) is 7192": (100_000, ModelWindow(), 1000, 7192),
    "(100, 100/100/120, 50) is 50": (100, ModelWindow(100, 100, 120), 50, 50),
    "0 is 1": (0, ModelWindow(), 0, 1),
    "-5 is 1": (-5, ModelWindow(), 0, 1),
    "separate windows, input fits": (40, ModelWindow(100, 50, separate=True), 90, 40),
    "separate windows, input too long": (40, ModelWindow(100, 50, separate=True), 101, 1),
}


@pytest.mark.parametrize(
    ("requested", "window", "estimated", "clamped"), CLAMPED.values(), ids=CLAMPED
)
def test_clamp(requested: int, window: ModelWindow, estimated: int, clamped: int) -> None:
    assert clamp_max_tokens(requested, window, estimated) == clamped


WINDOWS = st.builds(
    ModelWindow,
    st.integers(1, 10**6),
    st.integers(1, 10**6),
    st.none() | st.integers(1, 10**6),
    st.booleans(),
)


@EXAMPLES
@given(st.integers(), WINDOWS, st.integers(0, 10**6))
def test_clamped_answer_is_a_whole_number_within_every_window(
    requested: int, window: ModelWindow, estimated: int
) -> None:
    clamped = clamp_max_tokens(requested, window, estimated)
    assert clamped == 1 or clamped <= min(requested, window.output)
    assert clamped == 1 or window.separate or clamped + estimated <= window.input
    assert clamped == 1 or window.total is None or clamped + estimated <= window.total
