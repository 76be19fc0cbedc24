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
from antiphon.replay.replay import Replay, ReplayBlock
from antiphon.themes import DEFAULT_THEME, LIGHT_THEME, bundled_themes_folder, load_themes
from antiphon.time_format import to_the_minute
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.types.block_metadata import is_cut_out
from antiphon_kernel.types.enums import BlockKind, Status
from antiphon_kernel.types.quoting import count_of
from antiphon_kernel.types.records import COLOUR_SLOTS
from antiphon_kernel.types.replay import (
    CreatedBlock,
    ReplayChange,
    ReplayPrincipal,
    SplicedText,
)

if TYPE_CHECKING:
    from markdown_it.token import Token

_STYLE: Final = """
body { margin: 2rem auto; max-width: 46rem; padding: 0 1rem; line-height: 1.5;
  font-family: system-ui, sans-serif; color: var(--ink); background: var(--page) }
h1 { font-size: 1.4rem } article h1, article h2, article h3 { font-size: 1.1rem }
article { border-left: 3px solid var(--author); margin: 0 0 1rem; padding: 0 0 0 1rem }
b { color: var(--author) } .legend b { margin-right: 1.5em } a { color: inherit }
time, summary { color: var(--dim); font-size: .85rem }
article p { white-space: pre-line }
article p, article pre, article ul, article ol { margin: .5rem 0 }
span[title] { color: var(--author);
  background: color-mix(in srgb, var(--author) 14%, transparent) }
pre, code { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .85rem; background: color-mix(in srgb, var(--ink) 7%, transparent) }
pre { padding: .5rem .75rem; white-space: pre-wrap; overflow-wrap: anywhere }
pre code { background: none }
blockquote { margin: .5rem 0; padding-left: 1rem; border-left: 2px solid var(--dim) }
table { border-collapse: collapse } th, td { border: 1px solid var(--dim); padding: .1rem .5rem }
@media print {
  body { margin: 0; max-width: none; print-color-adjust: exact } tr { break-inside: avoid }
  details::details-content { content-visibility: visible; display: block; block-size: auto }
  article a[href]::after { content: " (" attr(href) ")" }
}
"""
_OPTIONS: Final = MarkdownIt("commonmark").options

_PLACES: Final = "places"
"""Key in a token's `meta`: where its characters stand in the text of the block."""


def static_page(replay: Replay) -> str:
    """Return the page, as HTML without a script."""
    authors: dict[str, list[str]] = {}
    for step in replay.steps:
        for edit in step.line.edits if isinstance(step.line, ReplayChange) else ():
            if isinstance(edit, CreatedBlock):
                # Of a copy, who has copied it is somebody else.
                authors[edit.block] = [edit.header["author"]] * len(edit.text)
            elif isinstance(edit, SplicedText):
                end = edit.offset + edit.deleted
                authors[edit.block][edit.offset : end] = [step.line.by] * len(edit.inserted)
    people, label = replay.people, _escaped(replay.label)
    shown = [one for one in replay.last.blocks.values() if not is_cut_out(one.header)]
    shown.sort(key=lambda one: (one.header.order, one.header.id))
    articles = ""
    for author, group in groupby(shown, key=lambda one: one.header.author):
        first, *others = group
        when = f"<time>{_escaped(to_the_minute(first.header.created))}</time>"
        articles += f"<article {_marked(people[author])}>\n{_name(people[author])} {when}\n"
        for one in (first, *others):
            articles += _shown(one, _BlockRenderer(one, authors[one.header.id], people))
        articles += "</article>\n"
    themes = load_themes(bundled_themes_folder(), bundled_themes_folder()).themes
    light, dark = (
        f":root {{ --ink: {theme.foreground}; --page: {theme.background};"
        f" --dim: {theme.variables['cell-dim']} }}"
        + "".join(
            f" .a{slot} {{ --author: {theme.variables[f'author-{slot}']} }}"
            for slot in range(COLOUR_SLOTS)
        )
        for theme in (themes[LIGHT_THEME], themes[DEFAULT_THEME])
    )
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
<p class="legend">{"".join(map(_name, people.values()))}</p>
{articles}</html>
"""


def _shown(block: ReplayBlock, renderer: _BlockRenderer) -> str:
    header, first = block.header, renderer.source.partition("\n")[0][:100]
    if header.kind in (BlockKind.TEXT, BlockKind.DRIFT):
        return renderer.markdown()
    said = _escaped(header.tool_name or header.path or header.kind)
    if header.kind == BlockKind.TOOL_CALL:
        said += f" <code>{_escaped(first)}</code>"
    else:
        said += f" · {count_of(renderer.source.strip().count(chr(10)) + 1, 'line')}"
    said += " ✗" if header.is_error or header.status == Status.ERROR else ""
    text = renderer.markdown() if header.kind == BlockKind.THINKING else renderer.verbatim()
    return f"<details><summary>{said}</summary>{text}</details>\n"


class _BlockRenderer(RendererHTML):
    """Renderer of a block that marks what others wrote, and opens harmless addresses only."""

    def __init__(
        self, block: ReplayBlock, authors: Sequence[str], people: Mapping[str, ReplayPrincipal]
    ) -> None:
        super().__init__()
        self.source = sanitize(block.text.replace("\r\n", " \n"))
        self._own = block.header.author
        self._authors = authors
        self._people = people

    def verbatim(self) -> str:
        return f"<pre>{self._html(self.source, range(len(self.source)))}</pre>"

    def markdown(self) -> str:
        tokens, at = parse(self.source), 0
        if any(one.level >= DEEPEST - 1 for one in tokens):
            return self.verbatim()

        def find(content: str) -> list[int]:
            nonlocal at
            places: list[int] = []
            for line in content.split("\n"):
                at = max(at, self.source.find(line, at))
                places += range(at, at + len(line) + 1)
                at += len(line)
            return places

        starts = SourceLines(self.source).starts
        for token in tokens:
            token.attrs.pop("style", None)
            if token.map is not None:
                at = max(at, starts[token.map[0]])
            if token.type in ("fence", "code_block"):
                at = max(at, self.source.find("\n", at)) if token.type == "fence" else at
                token.meta[_PLACES] = find(token.content)
            elif token.type == "inline":
                places = find(token.content)
                for one in token.children or ():
                    mark = len(one.markup) if one.type == "code_inline" else 0
                    one.meta[_PLACES] = places[one.meta.get(AT, 0) + mark :]
        return self.render(tokens, _OPTIONS, {})

    def _html(self, text: str, places: Iterable[int]) -> str:
        """Return characters that stand at these places."""
        authors = (self._authors[one] if one < len(self._authors) else "" for one in places)
        pairs = zip_longest(text, islice(authors, len(text)))
        written = ""
        for author, run in groupby(pairs, key=lambda pair: pair[1] or self._own):
            part = _escaped("".join(character for character, _ in run))
            mark = "" if author == self._own else _marked(self._people[author])
            written += f"<span {mark}>{part}</span>" if mark else part
        return written

    def text(self, tokens: Sequence[Token], idx: int, options: Any, env: Any) -> str:
        return self._html(tokens[idx].content, tokens[idx].meta[_PLACES])

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


def _name(author: ReplayPrincipal) -> str:
    return f"<b {_marked(author)}>{_escaped(author.username)}</b>"


def _marked(author: ReplayPrincipal) -> str:
    return f'class="a{author.colour % COLOUR_SLOTS}" title="{_escaped(author.username)}"'


def _escaped(text: str) -> str:
    return escape(sanitize(text))
