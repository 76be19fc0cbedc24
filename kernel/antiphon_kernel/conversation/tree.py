"""The conversations of a kernel as trees: contexts that share a beginning share its messages.

A context's messages are a path, and forks of one context are one tree. A node stands for the
messages up to it: contexts are on it that begin with them. Where a context ends is kept, all else
follows; so a branch costs no more than the messages that it does not share.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from antiphon_kernel.contexts.context import Context
from antiphon_kernel.conversation.message_blocks import MessagePath, PathMessage
from antiphon_kernel.storage import ContextRow
from antiphon_kernel.tasks import TimeSlice
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.ids import ContextId

BRANCH_SUFFIX: Final = "-branch"
"""Behind the label of a conversation in the labels of its branches."""

_AT_ONCE: Final = 100
"""Blocks that are read without a pause."""

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class TreeNode:
    """A beginning that one or more contexts have: its last message, and what comes before it."""

    parent: TreeNode | None
    digest: bytes
    depth: int
    """Number of its messages."""
    children: dict[bytes, TreeNode] = field(default_factory=dict)
    ends: dict[ContextId, Branch] = field(default_factory=dict)
    """The contexts that have no further message."""

    def branches(self) -> Iterator[Branch]:
        """Yield the contexts that begin with these messages."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield from node.ends.values()
            waiting.extend(reversed(node.children.values()))


@dataclass(slots=True, eq=False)
class Branch:
    """One context in its tree."""

    row: ContextRow
    path: MessagePath
    nodes: list[TreeNode]
    """The node of each of its beginnings, the empty one first."""
    unlisten: Callable[[], None]
    """Stops listening to failures of the context."""

    @property
    def context(self) -> Context:
        return self.path.context

    @property
    def messages(self) -> Sequence[PathMessage]:
        return self.path.messages

    def is_on(self, node: TreeNode) -> bool:
        """Return whether the context begins with the messages of a node."""
        return node.depth < len(self.nodes) and self.nodes[node.depth] is node

    def refresh(self, most: int | None = None) -> None:
        """Follow what has changed in the context.

        Args:
            most: as `MessagePath.refresh` takes it.
        """
        if self.path.is_current:
            return
        end = self.nodes[-1]
        end.ends.pop(self.row.id, None)
        del self.nodes[self.path.refresh(most) + 1 :]
        for one in self.messages[len(self.nodes) - 1 :]:
            node = self.nodes[-1]
            if one.digest not in node.children:
                node.children[one.digest] = TreeNode(node, one.digest, node.depth + 1)
            self.nodes.append(node.children[one.digest])
        self.nodes[-1].ends[self.row.id] = self
        _prune(end)

    def leave(self) -> None:
        """Be no part of the tree any more."""
        self.path.close()
        self.unlisten()
        end = self.nodes[-1]
        end.ends.pop(self.row.id, None)
        _prune(end)


def _prune(node: TreeNode) -> None:
    """Let go of beginnings that no context has any more."""
    while node.parent is not None and not node.children and not node.ends:
        if node.parent.children.get(node.digest) is node:
            del node.parent.children[node.digest]
        node = node.parent


class ConversationTrees:
    """The trees of one kernel; each is read when somebody first asks for it."""

    def __init__(
        self,
        rows: Callable[[], Sequence[ContextRow]],
        root: Callable[[int], int],
        open_context: Callable[[str], Awaitable[Context]],
    ) -> None:
        """`root`: the number of the context that one goes back to, by its own."""
        self._rows = rows
        self._root_of = root
        self._open = open_context
        self._known = 0
        self._families: dict[int, dict[ContextId, ContextRow]] = {}
        self._branches: dict[ContextId, Branch] = {}
        self._unread: dict[int, dict[ContextId, None]] = {}
        """In the order of their numbers, so that trees come to be alike after a restart."""
        self._nodes: dict[int, TreeNode] = {}
        self.writing = asyncio.Lock()
        """Held while messages are added: who looks for a beginning finds what others add."""

    async def branch(self, context: Context) -> Branch:
        """The branch that a context is, with all of its tree up to date until the next await."""
        self._learn()
        root = self._root_of(context.row.number)
        while unread := self._unread[root]:
            one = next(iter(unread))
            try:
                opened = await self._open(one)
            except AntiphonError as error:
                if one == context.id or error.code is not ErrorCode.STORAGE_FAILED:
                    raise
                _log.warning("a branch is left out of its conversation: %s", error)
                unread.pop(one, None)
                continue
            if one in unread:
                del unread[one]
                self._add(root, opened)
        if self._branches[context.id].context is not context:
            self._add(root, context)
        slices = TimeSlice()
        while sum(one.path.unread for one in self.family(context)) > _AT_ONCE:
            stale = next(one for one in self.family(context) if not one.path.is_current)
            stale.refresh(_AT_ONCE)
            await slices.pause()
        for branch in self.family(context):
            branch.refresh()
        return self._branches[context.id]

    def family(self, context: Context) -> list[Branch]:
        """Return every branch of the tree of a context that can be read, oldest first."""
        rows = self._families[self._root_of(context.row.number)]
        found = (self._branches[one] for one in rows if one in self._branches)
        return sorted(found, key=lambda one: one.row.number)

    def stem(self, row: ContextRow) -> str:
        """Return the label that the branches of a conversation have, apart from a number."""
        root = self._root_of(row.number)
        return next(one.label for one in self._rows() if one.number == root) + BRANCH_SUFFIX

    def root(self, context: ContextId) -> int | None:
        """Return the number of the first context of a tree that has been read; None if not."""
        branch = self._branches.get(context)
        return self._root_of(branch.row.number) if branch is not None else None

    def forget(self, context: Context) -> None:
        """Read the tree of a context again when somebody asks for it: the context is closed."""
        root = self.root(context.id)
        if root is None:
            return
        # As a whole, so that it comes to be as it was.
        rows = self._families[root]
        for one in rows:
            branch = self._branches.pop(one, None)
            if branch is not None:
                branch.leave()
        self._unread[root] = dict.fromkeys(rows)

    def _learn(self) -> None:
        rows = self._rows()
        for row in rows[self._known :]:
            root = self._root_of(row.number)
            self._families.setdefault(root, {})[row.id] = row
            self._unread.setdefault(root, {})[row.id] = None
        self._known = len(rows)

    def _add(self, root: int, context: Context) -> None:
        before = self._branches.pop(context.id, None)
        if before is not None:
            before.leave()
        node = self._nodes.setdefault(root, TreeNode(None, b"", 0))
        stop = context.failed.listen(lambda _: self._unread[root].update({context.id: None}))
        self._branches[context.id] = Branch(context.row, MessagePath(context), [node], stop)
