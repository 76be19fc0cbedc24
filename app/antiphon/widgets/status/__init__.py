"""The single lines around the document: who is here, what works now, what has happened."""

from antiphon.widgets.status.find_bar import FindBar
from antiphon.widgets.status.header_line import HeaderLine, Participant
from antiphon.widgets.status.hint_bar import HintBar, HintLog
from antiphon.widgets.status.line import (
    FooterLine,
    KeyLines,
    Keys,
    Row,
    StatusLine,
    StatusRows,
    StatusSpan,
    cut_to,
    fit,
    key_rows,
)
from antiphon.widgets.status.live_strip import DraftPreview, LiveStrip, LiveText, surroundings
