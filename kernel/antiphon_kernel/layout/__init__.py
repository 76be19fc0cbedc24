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
from antiphon_kernel.layout.model_view import (
    NO_OUTPUT,
    ROUND,
    SIGNATURE,
    SIGNED_TEXT,
    BlockPosition,
    call_signature,
    signature_metadata,
    valid_signature,
)
from antiphon_kernel.layout.paths import (
    BlockPath,
    LayoutPath,
    PathError,
    SourcesPath,
    copied_ids,
    is_path,
    parse_path,
    rename_derived,
    tool_call_id,
    turn_id,
)
from antiphon_kernel.layout.reading import (
    LayoutReading,
    ModelRequest,
    cache_points,
    read_layout,
    why_not_hidden,
)
from antiphon_kernel.layout.summary import (
    NewSummary,
    compact,
    extract,
    moved_metadata,
    read_record,
    weigh,
)
from antiphon_kernel.layout.tail import (
    Announcement,
    LayoutTail,
    PoolSource,
    SourceError,
    budget_text,
    change_text,
    normal_path,
    normal_url,
    reader_text,
)
from antiphon_kernel.layout.visible import (
    EVERYTHING,
    BreakReason,
    ContributionFilter,
    PrefixBreak,
    first_break,
    visible,
)
