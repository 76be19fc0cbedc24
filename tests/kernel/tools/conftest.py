"""A block with every kind of content, and a source that may write all of it."""

from __future__ import annotations

import pytest

from antiphon_kernel.kernel import Kernel
from antiphon_kernel.types.enums import PrincipalKind
from antiphon_kernel.types.records import Actor
from tests.kernel.kernel.calls import Make
from tests.kernel.tools.files import REPORT


@pytest.fixture
async def report(make: Make) -> str:
    return await make(schema=REPORT, content=None)


@pytest.fixture
async def lsp(kernel: Kernel) -> Actor:
    return kernel.open_session(await kernel.principal("lsp", PrincipalKind.SOURCE), "test")
