"""Several kernels on one real Postgres, in one process, each behind a link that can be cut."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.cluster import Ownership
from antiphon_kernel.kernel import Kernel
from antiphon_kernel.limits import Limits
from antiphon_kernel.registry import Registry
from antiphon_kernel.storage.postgres import PostgresDatabase
from antiphon_kernel.storage.postgres_schema import POSTGRES_SCHEMAS
from antiphon_kernel.tools.all_tools import KERNEL_TOOLS
from antiphon_kernel.types.enums import PrincipalKind
from tests.kernel.cluster.database_link import DatabaseLink
from tests.kernel.kernel.calls import Caller

LEASE_SECONDS = 2.0

LIMITS = Limits(kernel_lease_seconds=LEASE_SECONDS, takeover_look_seconds=0.1)


@dataclass(frozen=True)
class Node:
    """A kernel of the cluster, calls of its owner, and its way to the database."""

    kernel: Kernel
    call: Caller
    link: DatabaseLink

    async def running_block(self, text: str = "") -> str:
        """Let a model begin to write; return its block."""
        kernel = self.kernel
        prompt = await self.call("block.create", kind="text", content="Go on.", status="done")
        aria = kernel.open_session(await kernel.principal("aria", PrincipalKind.MODEL), "turn")
        about = {"kind": "text", "content": text, "parent_id": prompt["block_id"]}
        block = (await kernel.call(aria, "block.create", about))["block_id"]
        await kernel.call(aria, "block.status", {"block_id": block, "status": "running"})
        return str(block)

    async def text(self, block: str) -> str:
        return str((await self.call("block.read", block_id=block))["content"])

    @property
    def ownership(self) -> Ownership:
        assert self.kernel.cluster is not None
        return self.kernel.cluster.ownership


OpenNode = Callable[..., Awaitable[Node]]


@pytest.fixture
async def open_node(store: str, tmp_path: Path) -> AsyncIterator[OpenNode]:
    """Opens one more kernel on the test's database."""
    nodes: dict[str, Node] = {}

    async def ask_owner(address: str, root: int) -> None:
        await nodes[address].kernel.open_contexts.hand_over(root)

    async def open_one(**limits: Any) -> Node:
        name = f"node{len(nodes)}"
        link = DatabaseLink(store)
        await link.start()
        kernel = await Kernel.open(
            tmp_path / name,
            tmp_path,
            registry=Registry(KERNEL_TOOLS),
            owner="amy",
            limits=LIMITS.model_copy(update=limits),
            store=link.url,
        )
        node = Node(kernel, Caller(kernel, kernel.open_session(kernel.owner, "test")), link)
        nodes[name] = node
        node.ownership.ask_owner = ask_owner
        await node.ownership.listen_at(name)
        return node

    yield open_one
    for node in nodes.values():
        node.link.go_on()
        await node.kernel.close()
        await node.link.close()


OpenOwner = Callable[..., Awaitable[Ownership]]


@pytest.fixture
async def open_owner(store: str) -> AsyncIterator[OpenOwner]:
    """Opens one more owner of trees, without a kernel."""
    databases: list[PostgresDatabase] = []
    owners: list[Ownership] = []

    async def open_one(url: str = store) -> Ownership:
        databases.append(PostgresDatabase(url, POSTGRES_SCHEMAS["journal"]))
        owners.append(await Ownership.open(databases[-1], LEASE_SECONDS))
        await owners[-1].listen_at(f"owner{len(owners)}")
        return owners[-1]

    yield open_one
    for owner in owners:
        await owner.close()
    for database in databases:
        await database.close()
