"""The single lines around the document: who is here, what works now, what has happened."""

from antiphon.widgets.status.find_bar import FindBar
from antiphon.widgets.status.header_line import HeaderLine, Participant
from antiphon.widgets.status.key_lines import FooterLine, KeyLines, key_rows
from antiphon.widgets.status.line import Keys, Row, StatusLine, StatusRows, StatusSpan, cut_to, fit
from antiphon.widgets.status.live_strip import (
    DraftPreview,
    HintBar,
    HintLog,
    LiveStrip,
    LiveText,
    surroundings,
)
