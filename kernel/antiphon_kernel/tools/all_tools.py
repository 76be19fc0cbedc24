"""Every tool of the kernel layer; higher layers add theirs when the process is put together."""

from __future__ import annotations

from antiphon_kernel.registry import Tool
from antiphon_kernel.tools.append import append
from antiphon_kernel.tools.attach import attach
from antiphon_kernel.tools.block import collapse, create, exclude, move, status
from antiphon_kernel.tools.compaction import compact_context, expand
from antiphon_kernel.tools.content import (
    append_log,
    delete_item,
    export_content,
    get,
    import_content,
    increment,
    insert_item,
    push_item,
    render,
    set_field,
)
from antiphon_kernel.tools.context import (
    archive_context,
    create_context,
    export,
    fork_context,
    import_,
    list_contexts,
    rename_context,
)
from antiphon_kernel.tools.edit import apply_patch, edit, splice
from antiphon_kernel.tools.history import blame, history, redo, restore, undo
from antiphon_kernel.tools.kernel import (
    info,
    invite,
    invites,
    joins,
    kick,
    members,
    revoke,
    role,
    set_label,
)
from antiphon_kernel.tools.keys import (
    add_authority,
    add_key,
    ask_key,
    check_ssh,
    close_ssh,
    decide_key,
    end_session,
    ended_ssh,
    key_requests,
    list_keys,
    open_ssh,
    revoke_key,
)
from antiphon_kernel.tools.layout import layout, usage
from antiphon_kernel.tools.message import (
    append_messages,
    delete_messages,
    edit_message,
    message_branches,
    message_children,
    message_path,
    message_siblings,
    search_messages,
    split_message,
)
from antiphon_kernel.tools.message_import import import_messages
from antiphon_kernel.tools.page import page
from antiphon_kernel.tools.read import list_blocks, read
from antiphon_kernel.tools.search import block_search, kernel_search
from antiphon_kernel.tools.session import set_display_name, tools, whoami
from antiphon_kernel.tools.sources import add, list_sources
from antiphon_kernel.tools.sources import read as read_sources
from antiphon_kernel.tools.subscribe import subscribe, sync, unsubscribe
from antiphon_kernel.tools.timeline import context_history, timeline
from antiphon_kernel.tools.usage import kernel_usage

KERNEL_TOOLS: tuple[Tool, ...] = (
    create,
    append,
    edit,
    splice,
    apply_patch,
    read,
    get,
    render,
    set_field,
    increment,
    push_item,
    insert_item,
    delete_item,
    append_log,
    export_content,
    import_content,
    block_search,
    kernel_search,
    list_blocks,
    status,
    move,
    collapse,
    exclude,
    attach,
    undo,
    redo,
    blame,
    history,
    timeline,
    context_history,
    restore,
    subscribe,
    unsubscribe,
    sync,
    create_context,
    list_contexts,
    page,
    rename_context,
    archive_context,
    fork_context,
    compact_context,
    expand,
    layout,
    usage,
    export,
    import_,
    add,
    list_sources,
    read_sources,
    append_messages,
    edit_message,
    split_message,
    delete_messages,
    message_path,
    message_children,
    message_branches,
    message_siblings,
    search_messages,
    import_messages,
    whoami,
    set_display_name,
    tools,
    info,
    set_label,
    members,
    role,
    kick,
    invite,
    invites,
    revoke,
    joins,
    add_key,
    add_authority,
    list_keys,
    revoke_key,
    ask_key,
    key_requests,
    decide_key,
    check_ssh,
    open_ssh,
    ended_ssh,
    close_ssh,
    end_session,
    kernel_usage,
)
