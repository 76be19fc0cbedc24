"""A context as it is at the end of a replay, as one page to read and to print.

No script, no network: whatever the texts say is text, and addresses are opened by hand only.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from itertools import groupby, islice, zip_longest
from typing import TYPE_CHECKING, Any, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML

from antiphon.render.display import SourceLines
from antiphon.render.links import link_style
from antiphon.render.markdown_blocks import AT, DEEPEST
from antiphon.render.markdown_tokens import parse
from antiphon.replay.replay import ReplayBlock, edited_block
from antiphon.themes import DEFAULT_THEME, LIGHT_THEME, bundled_themes_folder, load_themes
from antiphon.time_format import to_the_minute
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.types.block_metadata import is_cut_out
from antiphon_kernel.types.enums import BlockKind, Status
from antiphon_kernel.types.quoting import count_of
from antiphon_kernel.types.records import COLOUR_SLOTS, BlockHeader
from antiphon_kernel.types.replay import (
    ReplayChange,
    ReplayHeader,
    ReplayLine,
    ReplayPrincipal,
    SplicedText,
)

if TYPE_CHECKING:
    from markdown_it.token import Token
    from textual.theme import Theme

_STYLE: Final = """
body { margin: 2rem auto; max-width: 46rem; padding: 0 1rem; line-height: 1.5;
  font-family: system-ui, sans-serif; color: var(--ink); background: var(--page) }
h1 { font-size: 1.4rem } article h1, article h2, article h3 { font-size: 1.1rem }
article { border-left: 3px solid var(--author); margin: 0 0 1rem; padding: 0 0 0 1rem }
header b, .legend b { color: var(--author) }
time, summary, .note { color: var(--dim); font-size: .85rem }
.legend b { margin-right: 1.5em } article p { white-space: pre-line }
article p, article pre, article ul, article ol { margin: .5rem 0 }
span[title] { color: var(--author);
  background: color-mix(in srgb, var(--author) 14%, transparent) }
pre, code { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .85rem; background: color-mix(in srgb, var(--ink) 7%, transparent) }
pre { padding: .5rem .75rem; white-space: pre-wrap; overflow-wrap: anywhere }
pre code { background: none } a { color: inherit }
blockquote { margin: .5rem 0; padding-left: 1rem; border-left: 2px solid var(--dim) }
table { border-collapse: collapse } th, td { border: 1px solid var(--dim); padding: .1rem .5rem }
@media print {
  body { margin: 0; max-width: none; print-color-adjust: exact }
  article { break-inside: auto } pre, tr { break-inside: avoid }
  details::details-content { content-visibility: visible; display: block; block-size: auto }
  article a[href]::after { content: " (" attr(href) ")" }
}
"""
_OPTIONS: Final = MarkdownIt("commonmark").options

_SUMMARY: Final = 100
"""Characters of a call that are seen before it is unfolded."""

_PLACES: Final = "places"
"""Key in a token's `meta`: where its characters stand in the text of the block."""


def static_page(lines: Iterable[ReplayLine]) -> str:
    """Return the page, as HTML without a script."""
    label = ""
    people: dict[str, ReplayPrincipal] = {}
    blocks: dict[str, ReplayBlock] = {}
    authors: dict[str, list[str]] = {}
    for line in lines:
        if isinstance(line, ReplayHeader):
            label = _escaped(line.label)
        elif isinstance(line, ReplayPrincipal):
            people[line.id] = line
        elif isinstance(line, ReplayChange):
            for edit in line.edits:
                before = blocks.get(edit.block)
                block = blocks[edit.block] = edited_block(before, edit)
                if before is None:
                    authors[edit.block] = [line.by] * len(block.text)
                elif isinstance(edit, SplicedText):
                    end = edit.offset + edit.deleted
                    authors[edit.block][edit.offset : end] = [line.by] * len(edit.inserted)
    shown = [one for one in blocks.values() if not is_cut_out(one.header)]
    shown.sort(key=lambda one: (one.header.order, one.header.id))
    legend = "".join(
        f'<b class="a{one.colour % COLOUR_SLOTS}">{_escaped(one.username)}</b>'
        for one in people.values()
    )
    articles = "".join(
        _article(people[author], [(one, authors[one.header.id]) for one in group], people)
        for author, group in groupby(shown, key=lambda one: one.header.author)
    )
    themes = load_themes(bundled_themes_folder(), bundled_themes_folder()).themes
    light, dark = _colours(themes[LIGHT_THEME]), _colours(themes[DEFAULT_THEME])
    style = f"{light}@media screen and (prefers-color-scheme: dark) {{ {dark} }}{_STYLE}"
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width">
<title>{label}</title>
<style>{style}</style>
<h1>{label}</h1>
<p class="legend">{legend}</p>
{articles}</html>
"""


def _colours(theme: Theme) -> str:
    slots = "".join(
        f".a{slot} {{ --author: {theme.variables[f'author-{slot}']} }} "
        for slot in range(COLOUR_SLOTS)
    )
    dim = theme.variables["cell-dim"]
    page = f"--ink: {theme.foreground}; --page: {theme.background}; --dim: {dim}"
    return f":root {{ {page} }} {slots}"


def _article(
    author: ReplayPrincipal,
    blocks: Sequence[tuple[ReplayBlock, Sequence[str]]],
    people: Mapping[str, ReplayPrincipal],
) -> str:
    created = _escaped(to_the_minute(blocks[0][0].header.created))
    parts = "\n".join(_block(block.header, _Authored(block, by, people)) for block, by in blocks)
    return f"""<article class="a{author.colour % COLOUR_SLOTS}">
<header><b>{_escaped(author.username)}</b> <time>{created}</time></header>
{parts}
</article>
"""


def _block(header: BlockHeader, written: _Authored) -> str:
    lines = count_of(written.text.count("\n") + 1, "line")
    failed = " ✗" if header.is_error or header.status == Status.ERROR else ""
    if header.kind in (BlockKind.TEXT, BlockKind.DRIFT):
        return written.markdown()
    if header.kind == BlockKind.THINKING:
        return f"<details><summary>thinking · {lines}</summary>{written.markdown()}</details>"
    if header.kind == BlockKind.TOOL_CALL:
        first = _escaped(written.text.partition("\n")[0][:_SUMMARY])
        said = f"{_escaped(header.tool_name or 'call')} <code>{first}</code>"
    elif header.kind == BlockKind.TOOL_RESULT:
        said = f"result · {lines}"
    else:
        note = _escaped(f"{header.kind} {header.path or ''}")
        return f'<p class="note">{note}</p>{written.verbatim()}'
    return f"<details><summary>{said}{failed}</summary>{written.verbatim()}</details>"


class _Authored:
    """A block's text, and who wrote each character of it."""

    def __init__(
        self, block: ReplayBlock, authors: Sequence[str], people: Mapping[str, ReplayPrincipal]
    ) -> None:
        self.text = sanitize(block.text.replace("\r\n", " \n"))
        self._own = block.header.author
        self._authors = authors
        self._people = people

    def html(self, text: str, places: Iterable[int]) -> str:
        """Return characters that stand at these places; those of others are marked."""
        authors = (self._authors[one] if one < len(self._authors) else "" for one in places)
        runs = groupby(zip_longest(text, islice(authors, len(text))), key=lambda one: one[1])
        written = []
        for author, run in runs:
            part = _escaped("".join(character for character, _ in run))
            if author and author != self._own:
                one = self._people[author]
                name = f'class="a{one.colour % COLOUR_SLOTS}" title="{_escaped(one.username)}"'
                part = f"<span {name}>{part}</span>"
            written.append(part)
        return "".join(written)

    def verbatim(self) -> str:
        text = self.html(self.text, range(len(self.text)))
        return f"<pre>{text}</pre>" if text else ""

    def markdown(self) -> str:
        tokens = parse(self.text)
        if any(one.level >= DEEPEST - 1 for one in tokens):
            return self.verbatim()
        starts, at = SourceLines(self.text).starts, 0

        def find(content: str) -> list[int]:
            nonlocal at
            places: list[int] = []
            for line in content.split("\n"):
                at = max(at, self.text.find(line, at))
                places += range(at, at + len(line) + 1)
                at += len(line)
            return places

        for token in tokens:
            token.attrs.pop("style", None)
            if token.map is not None and token.map[0] < len(starts):
                at = max(at, starts[token.map[0]])
            if token.type in ("fence", "code_block"):
                at = max(at, self.text.find("\n", at)) if token.type == "fence" else at
                token.meta[_PLACES] = find(token.content)
            elif token.type == "inline":
                places = find(token.content)
                for one in token.children or ():
                    start = one.meta.get(AT, 0)
                    start += len(one.markup) if one.type == "code_inline" else 0
                    one.meta[_PLACES] = places[start:]
        return _AuthoredRenderer(self).render(tokens, _OPTIONS, {})


class _AuthoredRenderer(RendererHTML):
    """Renderer of Markdown that marks authors, opens harmless addresses only, and no picture."""

    def __init__(self, written: _Authored) -> None:
        super().__init__()
        self._written = written

    def text(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return self._written.html(tokens[idx].content, tokens[idx].meta[_PLACES])

    text_special = text

    def code_inline(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"<code>{self.text(tokens, idx, options, env)}</code>"

    def fence(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"<pre><code>{self.text(tokens, idx, options, env)}</code></pre>\n"

    code_block = fence

    def image(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return f"▣ {_escaped(tokens[idx].content)}"

    def link_open(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        address = str(tokens[idx].attrs.get("href", ""))
        if link_style(address) is not None:
            return f'<a href="{escape(address)}" rel="noreferrer">'
        next(one for one in tokens[idx:] if one.type == "link_close").tag = "span"
        return "<span>"


def _escaped(text: str) -> str:
    return escape(sanitize(text))
