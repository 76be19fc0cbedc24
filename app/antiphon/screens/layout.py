"""The parts of the document screen and where they stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Static

from antiphon.keymap import KeyMap
from antiphon.settings import Settings
from antiphon.widgets.block_list import Columns, DocumentView
from antiphon.widgets.composer import Composer
from antiphon.widgets.first_page import FirstPage
from antiphon.widgets.outline import LEAST_WIDTH, MOST_WIDTH, Outline
from antiphon.widgets.sidebar import WIDE, WIDTH, Sidebar
from antiphon.widgets.status import (
    DraftPreview,
    FindBar,
    FooterLine,
    HeaderLine,
    HintBar,
    HintLog,
    LiveStrip,
)

MAX_COLUMNS: Final = 104
"""The main column is no wider: gutter, text, and a name tag behind it. Wider terminals get it in
the middle, together with what is beside it."""

OUTLINE_FROM: Final = 160
"""Columns of the terminal from which the outline is there, unless it was put away, and code, tables
and output may be wider than text."""

MAX_WIDE_COLUMNS: Final = 132
"""The same for the main column of such a terminal."""

BESIDE_FROM: Final = 160
"""Columns of the terminal from which a file is beside the conversation."""

FILE_SHARE: Final = 0.55
"""Part of them that the file has, apart from those of a sidebar."""

MIN_COLUMNS: Final = 40
MIN_ROWS: Final = 10


class DocumentLayout(Container):
    """Sidebar and main column above the footer; in line with each other at every width."""

    @dataclass
    class SettingChosen(Message):
        """The person has chosen something that the next start is to find as it is."""

        name: str
        value: object

    DEFAULT_CSS = """
    DocumentLayout {
        layers: base cover; width: 100%; height: 100%; layout: vertical; background: $background;
    }
    DocumentLayout.-behind FooterLine { visibility: hidden; }
    DocumentLayout #body { height: 1fr; }
    DocumentLayout #main { width: 1fr; }
    DocumentLayout #page { height: 1fr; layers: base above; align: right bottom; }
    DocumentLayout #too-small {
        layer: cover; width: 100%; height: 100%; padding: 0 1; display: none;
        background: $background; color: $foreground;
    }
    DocumentLayout #too-small.-shown { display: block; }
    DocumentLayout.-file Composer { display: none; }
    DocumentLayout.-file DraftPreview { display: none; }
    """

    def __init__(
        self,
        area: DocumentView,
        composer: Composer,
        hints: HintLog,
        keymap: KeyMap,
        *,
        place: str,
        settings: Settings,
    ) -> None:
        super().__init__()
        self._gutter = settings.gutter
        self.area = area
        self.composer = composer
        self.header = HeaderLine(place)
        self.sidebar = Sidebar()
        self.outline = Outline()
        self.first_page = FirstPage()
        self.live = LiveStrip()
        self.drafts = DraftPreview()
        self.notice = HintBar(hints, tail_key=keymap.shown_key("tail"))
        self.find = FindBar()
        self.footer = FooterLine(keymap)
        self._too_small = Static(id="too-small")
        """Covers everything while the terminal is too small."""
        self._main = Vertical(id="main")
        self.page = Container(id="page")
        self._body = Horizontal(id="body")
        self.wants_sidebar = settings.sidebar
        """Whether the sidebar is to be there, whatever the width; that decides if it is None."""
        self.wants_outline = settings.outline
        self.is_beside = False
        """The file is at the right, the conversation at the left."""

    def compose(self) -> ComposeResult:
        with self._body:
            yield self.sidebar
            with self._main:
                yield self.header
                with self.page:
                    yield self.area
                    yield self.first_page
                    yield self.composer.completions
                yield self.live
                yield self.drafts
                yield self.notice
                yield self.find
                yield self.composer
            yield self.outline
        yield self.footer
        yield self._too_small

    def choose(self, name: str, value: object) -> None:
        """Keep what the person has chosen for a setting; a theme is shown from now on."""
        # By the screen: Textual stops a message at the screen if that is at work in this moment.
        self.screen.post_message(self.SettingChosen(name, value))

    @property
    def has_sidebar(self) -> bool:
        return self.sidebar.has_class("-open")

    @property
    def has_outline(self) -> bool:
        return self.outline.has_class("-open")

    @property
    def is_covered(self) -> bool:
        """Return whether the terminal is too small to show any of the layout."""
        return self._too_small.has_class("-shown")

    def fit(self, size: Size) -> bool:
        """Lay out for a terminal of this size; whether the sidebar has come or gone."""
        self._too_small.set_class(size.width < MIN_COLUMNS or size.height < MIN_ROWS, "-shown")
        self._too_small.update(
            f"antiphon needs {MIN_COLUMNS} × {MIN_ROWS}; this terminal has"
            f" {size.width} × {size.height}. Make it larger."
        )
        is_file = self.area.source.is_file
        wanted = size.width >= WIDE if self.wants_sidebar is None else self.wants_sidebar
        is_open = wanted and size.width >= 2 * WIDTH and not (is_file and self.is_beside)
        if self.is_beside:
            for_file = round((size.width - WIDTH) * FILE_SHARE)
            left = size.width - for_file
            size = Size(for_file if is_file else left, size.height)
            self.styles.margin = (0, 0, 0, left if is_file else 0)
        else:
            self.styles.margin = 0
        self.styles.width = size.width
        changed = is_open != self.has_sidebar
        self.sidebar.set_class(is_open, "-open")
        is_wide = size.width >= OUTLINE_FROM
        has_outline = is_wide and self.wants_outline and not is_file
        most = size.width if is_file else MAX_WIDE_COLUMNS if is_wide else MAX_COLUMNS
        room = size.width - (WIDTH if is_open else 0)
        if has_outline:
            outline = max(LEAST_WIDTH, min(MOST_WIDTH, room - most))
            self.outline.styles.width = outline
            room -= outline
        self.outline.set_class(has_outline, "-open")
        beside = max(0, room - most) // 2
        # One column of the main part is padding, one the scroll bar.
        columns = Columns.of(min(room, most) - 2, self._gutter)
        margin = 0 if columns.is_wide else 1
        self._body.styles.padding = (0, beside)
        self._main.styles.padding = (0, 0, 0, 1 - margin)
        self.footer.margin = beside + 1
        self.composer.mark.styles.width = columns.gutter
        self.notice.indent = self.live.indent = columns.gutter
        self.composer.completions.margin = max(0, columns.gutter - 2)
        self.header.margin = self.live.margin = self.drafts.margin = margin
        self.find.set_margin(margin)
        return changed
