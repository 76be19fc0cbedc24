"""Markdown-ish texts for property tests, made of fragments that are likely to interfere."""

from __future__ import annotations

from hypothesis import strategies as st

_STARTS = [
    "", "", "", "- ", "* ", "+ ", "1. ", "2) ", "10. ", "> ", "> - ", "- - ", "  - ", "   ",
    "    ", "\t", " \t", "# ", "### ", "#", "-", "1", "1.", "=", "---", "--", "***", "- ---",
]  # fmt: skip
_BODIES = [
    "", "", "word", "two words", "*em*", "**strong", "`code`", "``", "a|b", "|a|b|", "-|-",
    "|:-|-:|", "[l](u)", "[l](<u v> 't')", "![i](u)", "\\*", "&amp;", "&#27;", "~~s~~", "~~~",
    "~~~x", "```", "````", "```py", "```a`b", "x = 1 # c", "---", "===", "\u5b57\u5b57\u5b57",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467", "e\u0301", "\u200d", "\x1b[31m", "\u202e",
    "<http://a.b>", "https://a.b/x,", "mailto:a@b", "<b>", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "[r]: /url", "[r]", "line  ",
    "line\\", "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", "\x00", "\r", "\u2028",
]  # fmt: skip
_ENDS = [
    "\n", "\n", "\n", "\n\n", "\r\n", "\n \n", "", " ", "\n\n\n",
]  # fmt: skip

_fragments = st.one_of(st.sampled_from(_STARTS), st.sampled_from(_BODIES), st.sampled_from(_ENDS))
_lines = st.builds(
    lambda start, body, end: start + body + end,
    st.sampled_from(_STARTS),
    st.sampled_from(_BODIES),
    st.sampled_from(_ENDS),
)

markdown_texts = st.lists(st.one_of(_lines, _lines, _fragments), max_size=14).map("".join)
"""Texts in which each line may change what the lines around it mean."""

snippets = st.one_of(_fragments, _lines, st.text(max_size=6))
"""Text that somebody types or pastes in one go."""
