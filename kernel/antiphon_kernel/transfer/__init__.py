"""Export and import of contexts."""

from antiphon_kernel.transfer.exporting import (
    ErrorLine,
    as_line,
    export_lines,
    export_markdown,
    export_messages,
)
from antiphon_kernel.transfer.importing import import_lines
from antiphon_kernel.transfer.replay_export import replay_lines
