"""Every tool of the kernel layer; higher layers add theirs when the process is put together."""

from __future__ import annotations

from antiphon_kernel.registry import Tool
from antiphon_kernel.tools.append import append
from antiphon_kernel.tools.apply_patch import apply_patch
from antiphon_kernel.tools.arrange import collapse, exclude, move
from antiphon_kernel.tools.blame import blame
from antiphon_kernel.tools.content import (
    export_content,
    get,
    import_content,
    render,
)
from antiphon_kernel.tools.context import (
    archive_context,
    create_context,
    list_contexts,
    rename_context,
)
from antiphon_kernel.tools.create import create
from antiphon_kernel.tools.edit import edit
from antiphon_kernel.tools.fields import increment, set_field
from antiphon_kernel.tools.fork import fork_context
from antiphon_kernel.tools.history import history
from antiphon_kernel.tools.invitations import invite, invites, revoke
from antiphon_kernel.tools.items import (
    append_log,
    delete_item,
    insert_item,
    push_item,
)
from antiphon_kernel.tools.joins import joins
from antiphon_kernel.tools.list import list_blocks
from antiphon_kernel.tools.members import kick, members, role
from antiphon_kernel.tools.read import read
from antiphon_kernel.tools.restore import restore
from antiphon_kernel.tools.search import block_search, kernel_search
from antiphon_kernel.tools.session import tools, whoami
from antiphon_kernel.tools.splice import splice
from antiphon_kernel.tools.status import status
from antiphon_kernel.tools.subscribe import subscribe, sync, unsubscribe
from antiphon_kernel.tools.transfer import export, import_
from antiphon_kernel.tools.undo import redo, undo

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
    undo,
    redo,
    blame,
    history,
    restore,
    subscribe,
    unsubscribe,
    sync,
    create_context,
    list_contexts,
    rename_context,
    archive_context,
    fork_context,
    export,
    import_,
    whoami,
    tools,
    members,
    role,
    kick,
    invite,
    invites,
    revoke,
    joins,
)
