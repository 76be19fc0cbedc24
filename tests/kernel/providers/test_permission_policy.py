"""Policies: what they say of a tool, one over the other, and what a configuration may state."""

from __future__ import annotations

import pytest

from antiphon_kernel.providers import ALLOW_EVERYTHING, PermissionPolicy, ToolPermit


def test_permit_is_that_of_the_tool_then_of_every_tool_then_none() -> None:
    policy = PermissionPolicy.parse({"shell": "deny", "*": "ask"})
    assert policy.permit("shell") is ToolPermit.DENY
    assert policy.permit("block_read") is ToolPermit.ASK
    assert PermissionPolicy().permit("shell") is None
    assert ALLOW_EVERYTHING.permit("shell") is ToolPermit.ALLOW


def test_policy_over_another_keeps_what_it_does_not_say() -> None:
    base = PermissionPolicy.parse({"shell": "deny", "block_edit": "ask"}, ["git log *"])
    policy = PermissionPolicy.parse({"shell": "ask"}, ["git status"]).over(base)
    assert policy.permit("shell") is ToolPermit.ASK
    assert policy.permit("block_edit") is ToolPermit.ASK
    assert policy.allows_command("git log -n 1")
    assert policy.allows_command("git status")
    assert not policy.allows_command("git push")


@pytest.mark.parametrize(
    ("permits", "patterns", "message"),
    [
        ({"shell": "maybe"}, (), "shell is allow or ask or deny, not 'maybe'"),
        ({}, ("git log; rm",), "shell_allow has 'git log; rm': a pattern is one command"),
    ],
)
def test_policy_with_an_unknown_permit_or_a_bad_pattern_names_it(
    permits: dict[str, str], patterns: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        PermissionPolicy.parse(permits, patterns)
