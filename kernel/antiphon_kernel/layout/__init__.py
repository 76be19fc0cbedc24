"""Layout of what models read: turns, rounds, paths, the text stream and its cache points."""

from antiphon_kernel.layout.arrange import (
    BlockAuthor,
    ItemType,
    Layout,
    LayoutBlock,
    LayoutItem,
    arrange,
)
from antiphon_kernel.layout.compaction import WHOLE_TURNS, CompactionError
from antiphon_kernel.layout.paths import (
    BlockPath,
    LayoutPath,
    PathError,
    SourcesPath,
    copied_ids,
    is_path,
    parse_path,
    rename_derived,
)
from antiphon_kernel.layout.reading import (
    NO_OUTPUT,
    ROUND,
    BlockPosition,
    LayoutReading,
    ModelRequest,
    call_signature,
    read_layout,
    signature_metadata,
    valid_signature,
    why_not_hidden,
)
from antiphon_kernel.layout.summary import NewSummary, compact, moved_metadata, read_record, weigh
from antiphon_kernel.layout.text_forms import (
    Announcement,
    PoolSource,
    SourceError,
    budget_text,
    change_text,
    drift_text,
    item_text,
    normal_path,
    normal_url,
    reader_text,
    tail_texts,
)
from antiphon_kernel.layout.visible import (
    EVERYTHING,
    SIGNATURE,
    SIGNED_TEXT,
    BreakReason,
    ContributionFilter,
    PrefixBreak,
    first_break,
    visible,
)
