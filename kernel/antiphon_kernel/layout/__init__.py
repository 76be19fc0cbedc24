"""Layout of what models read: turns, rounds, paths, the text stream and its cache points."""

from antiphon_kernel.layout.arrange import arrange
from antiphon_kernel.layout.blocks import SUMMARY_TYPE, BlockAuthor, LayoutBlock
from antiphon_kernel.layout.cache_points import CachePoints, cache_points
from antiphon_kernel.layout.derived_ids import tool_call_id, turn_id
from antiphon_kernel.layout.hiding import why_not_hidden
from antiphon_kernel.layout.items import ItemType, Layout, LayoutItem, LayoutTurn, rounds_of
from antiphon_kernel.layout.model_view import (
    ROUND,
    SIGNATURE,
    SIGNED_TEXT,
    BlockPosition,
    ModelView,
    model_view,
    signature_metadata,
    valid_signature,
)
from antiphon_kernel.layout.paths import (
    ArtifactPath,
    BlockPath,
    CallPath,
    CodePath,
    FilePath,
    LayoutPath,
    PathError,
    SourcesPath,
    SummaryPath,
    is_path,
    parse_path,
)
from antiphon_kernel.layout.prefix import BreakReason, PrefixBreak, first_break
from antiphon_kernel.layout.reading import LayoutReading, ModelRequest, read_layout
from antiphon_kernel.layout.text_forms import LayoutReader, item_text, stream_text
from antiphon_kernel.layout.visible import ContributionFilter, visible

__all__ = [
    "ROUND",
    "SIGNATURE",
    "SIGNED_TEXT",
    "SUMMARY_TYPE",
    "ArtifactPath",
    "BlockAuthor",
    "BlockPath",
    "BlockPosition",
    "BreakReason",
    "CachePoints",
    "CallPath",
    "CodePath",
    "ContributionFilter",
    "FilePath",
    "ItemType",
    "Layout",
    "LayoutBlock",
    "LayoutItem",
    "LayoutPath",
    "LayoutReader",
    "LayoutReading",
    "LayoutTurn",
    "ModelRequest",
    "ModelView",
    "PathError",
    "PrefixBreak",
    "SourcesPath",
    "SummaryPath",
    "arrange",
    "cache_points",
    "first_break",
    "is_path",
    "item_text",
    "model_view",
    "parse_path",
    "read_layout",
    "rounds_of",
    "signature_metadata",
    "stream_text",
    "tool_call_id",
    "turn_id",
    "valid_signature",
    "visible",
    "why_not_hidden",
]
