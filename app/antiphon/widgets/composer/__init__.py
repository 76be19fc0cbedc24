"""Message composer: a draft that the others see while it is typed."""

from antiphon.widgets.composer.composer import Composer, ComposerEditor
from antiphon.widgets.composer.draft_sync import SHELL_MARK, DraftSync, PrivateDraftFile, random_seq
