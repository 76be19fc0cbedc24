"""Layout of what models read: turns, rounds, paths, the text stream and its cache points."""

from antiphon_kernel.layout.announce import (
    Announcement,
    BudgetShare,
    ChangedBlock,
    ChangedLines,
    PresentReader,
    announcement_text,
)
from antiphon_kernel.layout.arrange import arrange
from antiphon_kernel.layout.cache_points import CachePoints, cache_points, why_not_hidden
from antiphon_kernel.layout.compaction import (
    WHOLE_TURNS,
    CompactionError,
    CompactionPlan,
    plan_compaction,
    plan_last_turns,
)
from antiphon_kernel.layout.items import (
    BlockAuthor,
    ItemType,
    Layout,
    LayoutBlock,
    LayoutItem,
    rounds_of,
)
from antiphon_kernel.layout.model_view import (
    ROUND,
    SIGNATURE,
    SIGNED_TEXT,
    BlockPosition,
    ModelView,
    call_signature,
    model_view,
    signature_metadata,
    valid_signature,
)
from antiphon_kernel.layout.paths import (
    ArtifactPath,
    BlockPath,
    CallPath,
    FilePath,
    LayoutPath,
    PathError,
    SourcesPath,
    SummaryPath,
    copied_ids,
    is_path,
    parse_path,
    rename_derived,
    tool_call_id,
    turn_id,
)
from antiphon_kernel.layout.prefix import BreakReason, PrefixBreak, first_break
from antiphon_kernel.layout.reading import LayoutReading, LayoutTail, ModelRequest, read_layout
from antiphon_kernel.layout.sources import (
    PoolSource,
    SourceError,
    normal_path,
    normal_url,
)
from antiphon_kernel.layout.summary import (
    NewSummary,
    SummaryRecord,
    compact,
    extract,
    moved_metadata,
    read_record,
    weigh,
)
from antiphon_kernel.layout.text_forms import LayoutReader, item_text
from antiphon_kernel.layout.visible import EVERYTHING, ContributionFilter, visible
