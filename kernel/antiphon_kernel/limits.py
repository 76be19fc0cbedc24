"""Every limit of the kernel, in one place."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from antiphon_kernel.types.constants import ATTACHMENT_BYTES


class Limits(BaseModel):
    """Limits of one call, one update or one block."""

    model_config = ConfigDict(frozen=True)

    block_code_points: int = 8_000_000
    """Text of one block."""
    file_bytes: int = 8_000_000
    """A file of the project that is opened as text."""
    value_code_points: int = 1_000_000
    """JSON of one item of a list, one entry of a log or one field that is no text; `metadata` and
    `input` of a header too."""
    header_code_points: int = 4_096
    """A header field that is a line of text: a path, the name of a tool."""
    list_items: int = 100_000
    """Items of one list, entries of one log."""
    schema_code_points: int = 100_000
    """JSON of one schema."""
    section_depth: int = 32
    """How deep the sections of one schema are nested."""
    operations_per_edit: int = 1_000
    """Operations in one `block.edit`."""
    content_blocks_per_append: int = 2_000
    """New content blocks in one `message.append` or `message.edit`; each costs some 0.4 ms."""
    patch_code_points: int = 1_000_000
    """Length of the patch in one `block.apply_patch`."""
    splices_per_patch: int = 5_000
    """Separate places that one patch changes; each costs some 0.3 ms in a text of a megabyte."""
    query_code_points: int = 1_000
    """Length of the text that a search looks for."""
    regex_seconds: float = 2.0
    """How long the regular expression of one search may run, over all texts."""
    regex_line_seconds: float = 0.5
    """How long it may run on one line; it can take hundreds of megabytes of memory a second."""
    search_code_points: int = 1_000_000
    """Text in the answer of one search; more is left out, and `truncated` says so."""
    page_code_points: int = 1_000_000
    """JSON of the messages in one answer; more is on the next page."""
    update_bytes: int = 4_000_000
    """One raw update of a connected client."""
    catch_up_bytes: int = 32_000_000
    """The first update of a connection, with everything that was written offline."""
    update_structs: int = 200_000
    """Items in one raw update."""
    draft_structs: int = 10_000
    """Items of one raw update between two that write the header of the same draft."""
    update_clients: int = 10_000
    """CRDT client ids whose items are in one raw update."""
    attachment_bytes: int = ATTACHMENT_BYTES
    """One attached file; as base64 it fits into one call, and every provider accepts it."""
    attachment_text_bytes: int = 1_000_000
    """One attached file that is text, since models read all of it."""
    attachments_per_message: int = 20
    """Files attached to one message."""
    project_instructions_bytes: int = 100_000
    """The project's `AGENTS.md`; a longer one is left out of what models read."""
    source_code_points: int = 200_000
    """Text of one source in the pool."""
    sources: int = 2_000
    """Sources in the pool of one context."""
    export_code_points: int = 8_000_000
    """Text of one `context.export` or `context.import`; over HTTP any length may be streamed."""
    export_line_bytes: int = 256 * 2**20
    """One line of an export that is imported: a block with its text and authors."""
    parent_depth: int = 512
    """Length of the chain of parents above a block."""
    clients_per_invitation: int = 1_000
    """Clients that may come in with one invitation that allows any number."""
    undo_entries: int = 500
    """Units that a principal can undo in one context; up to an eighth more stay for a while before
    the oldest are dropped."""
    snapshot_transactions: int = 2_000
    """Transactions after which a context's snapshot is written anew; if the document is long, one
    for each kilobyte of it."""
    snapshot_bytes: int = 1_000_000
    """The same in bytes of transactions; if the document is long, half its size."""
    snapshot_transactions_on_close: int = 100
    """With fewer transactions no snapshot is written on closing; the next opening reads them."""
    recent_blocks: int = 2_000
    """Last blocks of a long context that are stored apart; it opens with these only."""
    whole_context_seconds: float = 1_800.0
    """Time without use of others after which an open long context holds only these again."""
    idle_context_seconds: float = 300.0
    """Time without use after which an open context is closed."""
    idle_check_seconds: float = 5.0
    """Time between two checks for such contexts."""
    subscriptions_per_session: int = 64
    """Subscriptions that one session has at a time."""
    subscription_events: int = 1_000
    """Events that wait for the reader of a subscription; more become a resync."""
    subscription_code_points: int = 1_000_000
    """The same for the text in them."""
    append_batch_code_points: int = 50
    """A streamed append is flushed when more than this is buffered."""
    write_lease_seconds: float = 60.0
    """How long a model's or a tool's block stays open after a write by a session of a single call,
    such as a POST or a one-shot command; each further write extends it."""
    kernel_lease_seconds: float = 5.0
    """Of kernels on one database: time after which a lease that is not renewed ends."""
    takeover_look_seconds: float = 1.0
    """Of kernels on one database: time between two checks for contexts of kernels that ended."""
    append_silence_seconds: float = 0.1
    """Time without another append after which a streamed append is flushed."""


DEFAULT_LIMITS = Limits()
