"""The pages of benchmarks say beside earlier figures, and in the summary, what was measured."""

from __future__ import annotations

from tests.bench.page import PAGE, SUMMARY, explanation_of, sections_of, summary, whole


def test_benchmarks_page_compares_its_own_figures_with_earlier_ones() -> None:
    page = PAGE.read_text("utf-8")
    sections = sections_of(page)
    assert page == whole(sections)
    assert "| 20-character appends, 10 readers | 15,700 /s |" in page
    del sections["kernel"]
    assert "| 20-character appends, 10 readers | 15,700 /s | not in this run |" in whole(sections)


def test_summary_has_the_figures_that_its_rows_name() -> None:
    page = SUMMARY.read_text("utf-8")
    assert page == summary(page, sections_of(PAGE.read_text("utf-8")))
    assert len(page.splitlines()) <= 45
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    assert all(measured.strip() for _, measured, *_ in rows)


def test_explanation_of_a_section_is_what_stands_before_its_table() -> None:
    sections = sections_of(PAGE.read_text("utf-8"))
    assert explanation_of(sections["document"]) == ""
    assert explanation_of(sections["soak"]).startswith("Half an hour with three apps")
    told = explanation_of(sections["kernel"])
    assert told.startswith("The rows that do worst") and told.endswith("no part of any of them.")
