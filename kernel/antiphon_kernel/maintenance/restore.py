"""A backup becomes the journal of a data folder, under a new epoch."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from antiphon_kernel.contexts.opening import open_document
from antiphon_kernel.document.genesis import new_epoch_update
from antiphon_kernel.storage import (
    JOURNAL_FILE,
    Commit,
    CorruptContextError,
    Journal,
    check_journal,
    install,
)
from antiphon_kernel.types.clock import Clock
from antiphon_kernel.types.errors import storage_failed
from antiphon_kernel.types.ids import SYSTEM, IdSource, SessionId
from antiphon_kernel.types.records import Actor
from antiphon_kernel.types.roles import AccessRole


@dataclass(frozen=True, slots=True)
class Restored:
    """Result of a restore."""

    contexts: int
    damaged: tuple[str, ...]
    """Labels of the contexts that were damaged in the backup already."""
    aside: Path | None
    """The file that keeps the journal that was there before."""


async def restore(backup: Path, data: Path, clock: Clock) -> Restored:
    """Put a copy of `backup` in the place of the journal in `data`, which nobody may be using.

    Every context gets a new epoch, so that replicas of what was there before are refused instead
    of being merged. Nothing is deleted: the journal before is kept under another name.

    Raises:
        AntiphonError: storage_failed; the data folder is then as it was.
    """
    check_journal(backup)
    moment = clock.now_ms()
    fresh = data / f"{JOURNAL_FILE}.restoring"
    aside = data / f"{JOURNAL_FILE}.before-restore-{moment}"
    try:
        fresh.unlink(missing_ok=True)
        shutil.copyfile(backup, fresh)
        fresh.chmod(0o600)
        contexts, damaged = await _renew(fresh, moment)
        was_there = install(fresh, data / JOURNAL_FILE, aside)
    except OSError as error:
        raise storage_failed(
            f"{backup} could not be restored into {data}: {error}. The journal there is unchanged.",
            path=str(data),
        ) from error
    finally:
        for suffix in ("", "-wal", "-shm"):
            fresh.with_name(fresh.name + suffix).unlink(missing_ok=True)
    return Restored(contexts, tuple(damaged), aside if was_there else None)


async def _renew(path: Path, moment: int) -> tuple[int, list[str]]:
    """Give every context of a journal a new epoch."""
    ids = IdSource(lambda: moment)
    journal = await Journal.open(path)
    try:
        rows = await journal.contexts()
        principals = {one.id: one for one in await journal.principals()}
        if SYSTEM not in principals:
            raise storage_failed(
                f"{path} belongs to a kernel that was never founded: use another backup.",
            )
        session = SessionId(ids.uuid7())
        actor = Actor(principals[SYSTEM], session, AccessRole.OWNER, "restore", moment)
        journal.add_session(actor)
        damaged = []
        for row in rows:
            try:
                stored, document = await open_document(journal, row, ids.client_id())
            except CorruptContextError:
                damaged.append(row.label)
                continue
            epoch = ids.uuid7()
            update = new_epoch_update(document.update_since(), epoch)
            document.close()
            await journal.set_epoch(row, epoch)
            await journal.commit(Commit(row, stored.seq + 1, moment, actor, "restore", (), update))
        return len(rows), damaged
    finally:
        await journal.close()
