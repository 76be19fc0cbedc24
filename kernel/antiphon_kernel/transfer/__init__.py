"""Export and import of contexts."""

from antiphon_kernel.transfer.exporting import export_lines, export_markdown, export_messages
from antiphon_kernel.transfer.importing import import_lines
from antiphon_kernel.transfer.records import ErrorLine, as_line
