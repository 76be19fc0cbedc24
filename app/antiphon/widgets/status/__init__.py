"""The single lines around the document: who is here, what works now, what has happened."""

from antiphon.widgets.status.draft_preview import DraftPreview
from antiphon.widgets.status.find_bar import FindBar
from antiphon.widgets.status.footer_line import FooterLine
from antiphon.widgets.status.header_line import HeaderLine
from antiphon.widgets.status.hint_bar import HintBar, HintLog
from antiphon.widgets.status.key_lines import KeyLines, Keys, key_rows
from antiphon.widgets.status.line import Row, StatusLine, StatusRows, StatusSpan, cut_to, fit
from antiphon.widgets.status.live_strip import LiveStrip, LiveText
from antiphon.widgets.status.participants import Participant
