"""Pages: the last blocks of a context at one `seq`, to be read without opening it.

A page that is damaged, or older than the last transaction, is left out.
"""

from __future__ import annotations

import hashlib
import json
import logging
from typing import Final

from antiphon_kernel.storage.database import Database
from antiphon_kernel.storage.rows import ContextRow

PAGE_FORMAT: Final = 1
"""Format of the pages written by this version; others are left out."""

_log = logging.getLogger(__name__)


class Pages:
    """The pages of one journal, one for each context that has been closed.

    Every method raises AntiphonError storage_failed.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, context: ContextRow, seq: int) -> bytes | None:
        """The page of a context at its last transaction `seq`; None if there is none of that."""
        sql = "SELECT page, digest FROM pages WHERE context = ? AND format = ? AND seq = ?"
        rows = await self._database.select(sql, (context.number, PAGE_FORMAT, seq))
        if not rows:
            return None
        page, digest = rows[0]
        if not isinstance(page, bytes) or _digest(context, seq, page) != digest:
            _log.warning("the page of context %s is damaged and left out", context.label)
            return None
        return page

    async def write(self, context: ContextRow, seq: int, page: bytes) -> None:
        """Put a page in the place of the one before."""
        values = context.number, PAGE_FORMAT, seq, page, _digest(context, seq, page)
        sql = "INSERT OR REPLACE INTO pages VALUES (?, ?, ?, ?, ?)"
        await self._database.write([(sql, [values])])


def _digest(context: ContextRow, seq: int, page: bytes) -> bytes:
    about = json.dumps([PAGE_FORMAT, context.id, seq, len(page)]).encode()
    return hashlib.blake2b(about + page, digest_size=16).digest()
