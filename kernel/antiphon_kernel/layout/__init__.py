"""Layout of what models read: turns, rounds, paths, the text stream and its cache points."""

from antiphon_kernel.layout.arrange import arrange
from antiphon_kernel.layout.blocks import SUMMARY_TYPE, BlockAuthor, LayoutBlock
from antiphon_kernel.layout.derived_ids import tool_call_id, turn_id
from antiphon_kernel.layout.items import ItemType, Layout, LayoutItem, LayoutTurn, rounds_of
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
from antiphon_kernel.layout.visible import ContributionFilter, visible

__all__ = [
    "SUMMARY_TYPE",
    "ArtifactPath",
    "BlockAuthor",
    "BlockPath",
    "CallPath",
    "CodePath",
    "ContributionFilter",
    "FilePath",
    "ItemType",
    "Layout",
    "LayoutBlock",
    "LayoutItem",
    "LayoutPath",
    "LayoutTurn",
    "PathError",
    "SourcesPath",
    "SummaryPath",
    "arrange",
    "is_path",
    "parse_path",
    "rounds_of",
    "tool_call_id",
    "turn_id",
    "visible",
]
