"""Error for a context whose records cannot be read."""

from __future__ import annotations

from antiphon_kernel.storage.rows import ContextRow
from antiphon_kernel.types.errors import AntiphonError, ErrorCode


class CorruptContextError(AntiphonError):
    """The records of one context cannot be read; the other contexts are not concerned."""

    def __init__(self, context: ContextRow, what: str, seq: int | None = None) -> None:
        where = f" at seq {seq}" if seq is not None else ""
        super().__init__(
            ErrorCode.STORAGE_FAILED,
            f"The context {context.label!r} is damaged{where}: {what}. Nothing of it was changed;"
            " `antiphon doctor` says more, `antiphon restore` brings back a backup.",
            context=context.id,
            label=context.label,
            quarantined=True,
            **({} if seq is None else {"seq": seq}),
        )
        self.what = what
        self.seq = seq
