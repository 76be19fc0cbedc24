"""Opening, storing and closing of contexts: snapshots, last blocks, quarantine, search index."""

from antiphon_kernel.contexts.opening.context_registry import ContextRegistry, First, InitialContent
from antiphon_kernel.contexts.opening.loader import Quarantine, open_document
from antiphon_kernel.contexts.opening.open_contexts import OpenContexts
from antiphon_kernel.contexts.opening.page import ContextPage, has_page, read_page
from antiphon_kernel.contexts.opening.search_index import SearchIndex
from antiphon_kernel.contexts.opening.segments import RecentBlocks, omitted_segment
from antiphon_kernel.contexts.opening.takeover import Takeover
