"""The page of benchmarks says beside each earlier figure what its own sections say."""

from __future__ import annotations

from tests.bench.page import PAGE, sections_of, whole


def test_benchmarks_page_compares_its_own_figures_with_earlier_ones() -> None:
    page = PAGE.read_text("utf-8")
    assert page == whole(sections_of(page))
    assert "| 20-character appends, 10 readers | 15,700 /s |" in page
