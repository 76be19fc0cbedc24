"""Contexts and people beside the document."""

from antiphon.widgets.sidebar.sidebar import (
    WIDE,
    WIDTH,
    ContextName,
    Sidebar,
    context_entries,
    participant_rows,
)
