"""Every change is attributed by one string."""

from __future__ import annotations

import pytest

from antiphon_kernel.subscriptions import attribution
from antiphon_kernel.types.enums import PrincipalKind


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (PrincipalKind.HUMAN, "agent:p1:edit"),
        (PrincipalKind.MODEL, "agent:p1:edit"),
        (PrincipalKind.SHELL, "agent:p1:edit"),
        ("something newer", "agent:p1:edit"),
        (PrincipalKind.SOURCE, "source:p1:update"),
        (PrincipalKind.SYSTEM, "system:edit"),
        ("system", "system:edit"),
    ],
)
def test_change_is_attributed_by_the_kind_of_its_author(
    kind: PrincipalKind | str, expected: str
) -> None:
    assert attribution("p1", kind, "edit") == expected
