"""Principals, sessions, invitations and permissions."""

from antiphon_kernel.access.access_control import IN_THE_KERNEL, AccessControl, WriteGuard
from antiphon_kernel.access.commit_fence import CommitFence
from antiphon_kernel.access.invitations import (
    GUEST,
    TOKEN_BYTES,
    AuthenticationError,
    Invitations,
    Members,
    fingerprint_of,
)
from antiphon_kernel.access.permissions import (
    check_act_as,
    check_arrange,
    check_decide,
    check_draft,
    check_interrupt,
    check_invite_as,
    check_project_files,
    check_role,
    check_shell,
    check_speaker,
    check_status,
    check_tool,
    check_undo_of,
    check_update,
)
from antiphon_kernel.access.sessions import (
    VIA_MCP,
    VIA_SSH,
    VIA_TURN,
    VIA_WEB,
    EndedSession,
    Sessions,
    SshSessions,
)
from antiphon_kernel.access.waiting_decisions import (
    KeyRequests,
    ToolPermissions,
    canonical_arguments,
)
