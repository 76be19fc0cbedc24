"""SQLite or Postgres: every committed transaction, and what is found without replaying them."""

from antiphon_kernel.storage.auth import (
    AUTH_FILE,
    AuthStore,
    Client,
    Credential,
    Decision,
    Dismissal,
    StoredAccess,
    ToolPermission,
    User,
)
from antiphon_kernel.storage.backup import (
    JOURNAL_FILE,
    back_up,
    check_journal,
    copy_pages,
    install,
    open_to_read,
)
from antiphon_kernel.storage.commit_rows import LAST_SEQ, op_id
from antiphon_kernel.storage.database import Database, FenceError, TakenError
from antiphon_kernel.storage.journal import Journal
from antiphon_kernel.storage.journal_reader import (
    BYTES_ONLY,
    CorruptContextError,
    JournalReader,
    versions_of,
)
from antiphon_kernel.storage.rows import (
    Blob,
    BlockRow,
    ChangeRow,
    Commit,
    ContextRow,
    Cut,
    DriftRow,
    FileRow,
    ForkOrigin,
    InheritedText,
    SessionRow,
    Snapshot,
    StoredContext,
    StoredOp,
    UndoRow,
)
from antiphon_kernel.storage.schema import AUTH_SCHEMA, READABLE_FORMATS
from antiphon_kernel.storage.search_table import (
    IndexedText,
    SearchFilter,
    SearchTable,
    row_number,
)
from antiphon_kernel.storage.snapshots import SNAPSHOTS, Records
