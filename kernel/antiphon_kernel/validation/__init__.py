"""Validation of raw updates before they reach the document."""

from antiphon_kernel.validation.chunking import Chunk, validate_incrementally
from antiphon_kernel.validation.client_rules import UpdateScope, reject_read_only
from antiphon_kernel.validation.errors import check_limit, reject_long_text
from antiphon_kernel.validation.header_values import (
    TOOLS_ONLY,
    check_field,
    check_value,
    without_damage,
    without_question,
)
from antiphon_kernel.validation.item_index import ItemIndex
from antiphon_kernel.validation.lazy_item_index import LazyItemIndex
from antiphon_kernel.validation.update_validator import ValidatedUpdate, validate
