"""Reply tree: the children of each block, kept up to date with the document."""

from __future__ import annotations

from collections import defaultdict

from antiphon_kernel.document.changes import DocumentChange
from antiphon_kernel.document.document import Document


class BlockTree:
    """The children of the blocks of one document; read off it when first asked for."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._parents: dict[str, str] = {}
        self._children: defaultdict[str, set[str]] = defaultdict(set)
        self._known = False

    def descendants(self, block: str, depth: int) -> list[str]:
        """Return the descendants of a block down to `depth` levels, in document order.

        A block is no descendant of itself, even where stored parents run in a circle.
        """
        if not self._known:
            self._known = True
            for header in self._document.headers(self._document.block_ids(), keep=False):
                if header.parent is not None:
                    self._insert(header.id, header.parent)
            self._document.watch(self._follow)
        found = {block}
        generation = {block}
        for _ in range(depth):
            generation = {
                child for one in generation for child in self._children.get(one, ())
            } - found
            if not generation:
                break
            found |= generation
        return sorted(found - {block}, key=self._document.order.key)

    def _follow(self, change: DocumentChange) -> None:
        moved = [one.block for one in change.headers if "parent" in one.fields]
        for header in self._document.headers([*change.added, *moved]):
            before = self._parents.pop(header.id, None)
            if before is not None:
                self._children[before].discard(header.id)
            if header.parent is not None:
                self._insert(header.id, header.parent)

    def _insert(self, block: str, parent: str) -> None:
        self._parents[block] = parent
        self._children[parent].add(block)
