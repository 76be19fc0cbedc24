"""A context as it is at the end of a replay, as one page to read and to print.

No script, no network: whatever the texts say is text, and addresses are opened by hand only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import chain, count, groupby, repeat
from typing import TYPE_CHECKING, Final

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML

from antiphon.export.html_page import html_page
from antiphon.render.display import SourceLines
from antiphon.render.links import link_style
from antiphon.render.markdown_blocks import AT
from antiphon.render.markdown_tokens import parse
from antiphon.replay.replay import Replay, ReplayBlock
from antiphon.themes import LIGHT_THEME, bundled_themes_folder, load_themes
from antiphon.time_format import to_the_minute
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.types.block_metadata import is_cut_out
from antiphon_kernel.types.enums import BlockKind, Status
from antiphon_kernel.types.records import COLOUR_SLOTS
from antiphon_kernel.types.replay import CreatedBlock, ReplayChange, ReplayPrincipal, SplicedText

if TYPE_CHECKING:
    from markdown_it.token import Token

_STYLE: Final = """
body { margin: 2rem auto; max-width: 46rem; padding: 0 1rem; line-height: 1.5;
  font-family: system-ui, sans-serif; color: var(--ink); background: var(--page) }
h1 { font-size: 1.4rem } article h1, article h2, article h3 { font-size: 1.1rem }
article { border-left: 3px solid var(--author); margin: 0 0 1rem; padding: 0 0 0 1rem }
b { color: var(--author) } .legend b { margin-right: 1.5em } a { color: inherit }
time, summary { color: var(--dim); font-size: .85rem }
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
}
"""
_OPTIONS: Final = MarkdownIt("commonmark", {"breaks": True}).options

_Marked = Callable[[str, Iterable[int]], str]
"""Makes HTML of characters and where they stand in a block, in which marks what others wrote."""


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
        blocks = list(group)
        when = f"<time>{_escaped(to_the_minute(blocks[0].header.created))}</time>"
        articles += f"<article {_look(people[author])}>\n{_name(people[author])} {when}\n"
        articles += "".join(_shown(one, authors[one.header.id], people) for one in blocks)
        articles += "</article>\n"
    theme = load_themes(bundled_themes_folder(), bundled_themes_folder()).themes[LIGHT_THEME]
    colours = theme.variables
    style = f":root {{ --ink: {theme.foreground}; --page: {theme.background};"
    style += f" --dim: {colours['cell-dim']} }}"
    for slot in range(COLOUR_SLOTS):
        style += f" .a{slot} {{ --author: {colours[f'author-{slot}']} }}"
    style += _STYLE
    body = f"""<h1>{label}</h1>
<p class="legend">{"".join(map(_name, people.values()))}</p>
{articles}"""
    return html_page(label, style, body)


def _shown(block: ReplayBlock, authors: list[str], people: Mapping[str, ReplayPrincipal]) -> str:
    header, source = block.header, sanitize(block.text.replace("\r\n", " \n"))
    writers = [*authors, header.author]

    def marked(text: str, places: Iterable[int]) -> str:
        pairs = zip(text, chain(places, repeat(len(authors))), strict=False)
        written = ""
        for author, run in groupby(pairs, key=lambda pair: writers[min(pair[1], len(authors))]):
            part = _escaped("".join(character for character, _ in run))
            is_own = author == header.author
            written += part if is_own else f"<span {_look(people[author])}>{part}</span>"
        return written

    if header.kind in (BlockKind.TEXT, BlockKind.DRIFT):
        return _markdown(source, marked)
    is_markdown = header.kind == BlockKind.THINKING
    text = _markdown(source, marked) if is_markdown else f"<pre>{marked(source, count())}</pre>"
    said = _escaped(header.tool_name or header.path or header.kind)
    if header.kind == BlockKind.TOOL_CALL:
        said += f" <code>{_escaped(source.partition(chr(10))[0][:100])}</code>"
    said += " ✗" if header.is_error or header.status == Status.ERROR else ""
    return f"<details><summary>{said}</summary>{text}</details>\n"


def _markdown(source: str, marked: _Marked) -> str:
    tokens, at = parse(source), 0
    starts = SourceLines(source).starts
    for token in tokens:
        token.attrs.pop("style", None)
        if token.map is not None:
            at = max(at, starts[token.map[0]])
        if token.type == "fence":
            at = max(at, source.find("\n", at))
        places: list[int] = []
        for line in token.content.split("\n"):
            at = max(at, source.find(line, at))
            places += range(at, at + len(line) + 1)
            at += len(line)
        if token.type == "inline":
            _write_inline(token.children or (), places, marked)
        elif token.content:
            token.content = f"<pre><code>{marked(token.content, places)}</code></pre>\n"
            token.type = "html_block"
    return RendererHTML().render(tokens, _OPTIONS, {})


def _write_inline(tokens: Iterable[Token], places: Sequence[int], marked: _Marked) -> None:
    """Make HTML of all texts, and links of harmless addresses only."""
    tag = ""
    for token in tokens:
        at = token.meta.get(AT, 0)
        if token.type == "link_open":
            address = str(token.attrs.get("href", ""))
            tag = "span" if link_style(address) is None else "a"
            token.attrs = {"href": address, "rel": "noreferrer"} if tag == "a" else {}
        if token.type in ("link_open", "link_close"):
            token.tag = tag
        elif token.content or token.type == "image":
            if token.type == "image":
                token.content = f"▣ {_escaped(token.content)}"
            elif token.type == "code_inline":
                written = marked(token.content, places[at + len(token.markup) :])
                token.content = f"<code>{written}</code>"
            else:
                token.content = marked(token.content, places[at:])
            token.type = "html_inline"


def _name(author: ReplayPrincipal) -> str:
    return f"<b {_look(author)}>{_escaped(author.username)}</b>"


def _look(author: ReplayPrincipal) -> str:
    return f'class="a{author.colour % COLOUR_SLOTS}" title="{_escaped(author.username)}"'


def _escaped(text: str) -> str:
    return escape(sanitize(text))
