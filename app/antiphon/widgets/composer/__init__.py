"""Message composer: a draft that the others see while it is typed."""

from antiphon.widgets.composer.composer import Composer, ComposerEditor
from antiphon.widgets.composer.draft_sync import SHELL_MARK, DraftSync, random_seq
from antiphon.widgets.composer.private_draft import PrivateDraftFile
