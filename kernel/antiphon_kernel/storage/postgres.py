"""Tables in Postgres: opened, migrated, read and written; every failure is `storage_failed`.

SQL comes as SQLite has it, and is translated here. No text of Postgres holds a NUL: U+FFFF, which
is no character and which no text should hold, is stored in its place and read as a NUL.

A commit is on disk when the server says so, unless its operator has turned that off (`fsync`).
Connections are made when they are needed, and again when they were lost.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from itertools import chain
from typing import Final

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import Format, TransactionStatus
from psycopg.rows import TupleRow
from psycopg.types.string import StrDumperUnknown

from antiphon_kernel.storage.database import FenceError, Row, Statement, TakenError
from antiphon_kernel.storage.postgres_schema import FENCE_STATE
from antiphon_kernel.storage.schema import Schema
from antiphon_kernel.types.errors import AntiphonError, kernel_is_closing, storage_failed

_log = logging.getLogger(__name__)

_Connection = psycopg.AsyncConnection[TupleRow]

# The library warns of each statement that fails in a pipeline, beside raising the error.
logging.getLogger("psycopg").setLevel(logging.ERROR)

_NAMES: Final = frozenset(
    {"contexts_label_key", "principals_username_key", "users_username_key", "files_path_key"}
)
"""Constraints that two kernels may run into at the same time."""

_READERS: Final = 4
"""How many connections read at a time."""

_CONNECT_SECONDS: Final = 4
_IDLE_SECONDS: Final = 2
"""Seconds after which the server ends a transaction whose kernel says nothing more."""

_ROWS_AT_ONCE: Final = 64
"""How many rows one statement inserts at most, a power of two."""

_REPLACING: Final = (
    "SELECT relname::text, format(' ON CONFLICT (%s) DO UPDATE SET %s',"
    " string_agg(quote_ident(attname), ', ' ORDER BY attnum) FILTER (WHERE attnum = ANY (indkey)),"
    " string_agg(format('%1$I = excluded.%1$I', attname), ', ')"
    " FILTER (WHERE attnum <> ALL (indkey)))"
    " FROM pg_class c JOIN pg_attribute ON attrelid = c.oid AND attnum > 0 AND NOT attisdropped"
    " JOIN pg_index ON indrelid = c.oid AND indisprimary"
    " WHERE relnamespace = ?::text::regnamespace GROUP BY relname"
)
"""The end of an INSERT that is to replace a row with the same key, by table."""

_CHANNEL: Final = "antiphon"
"""Over which the kernels on a database tell each other what has changed."""

_VERSION_TABLE: Final = (
    "CREATE SCHEMA IF NOT EXISTS {schema}; CREATE TABLE IF NOT EXISTS schema"
    " (version BIGINT NOT NULL, usable_from BIGINT NOT NULL)"
)

_ALONE: Final = (
    "BEGIN; SET LOCAL lock_timeout = '20s'; SET LOCAL idle_in_transaction_session_timeout = '10s'"
)
"""How long others wait for a kernel that is alone, and after what silence it is so no more."""

_SETTINGS: Final = (
    "SET search_path = {schema}; SET jit = off;"
    f" SET idle_in_transaction_session_timeout = '{_IDLE_SECONDS}s';"
    " SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'"
)

_NUL, STORED_NUL = "\0", "\uffff"

_LISTED: Final = r"IN \(SELECT value FROM json_each\((\?\d*)\)\)"

_TRANSLATIONS: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (rf"NOT {_LISTED}", r"<> ALL (\1)"),
        (_LISTED, r"= ANY (\1)"),
        (r"IS NOT (?!NULL)", "IS DISTINCT FROM "),
        (r"LIMIT \?", "LIMIT nullif(?::bigint, -1)"),
        # What begins with a number is one for SQLite.
        (
            r"CAST\(o\.touched AS INTEGER\)",
            "nullif(split_part(o.touched, ':', 1), '')::bigint",
        ),
        (r"\buser\b", '"user"'),
        (r"search MATCH \?", "?::text IS NOT NULL"),  # `instr` finds trigrams by itself
    )
)


@cache
def translate(sql: str) -> str:
    """Return what Postgres is asked for a statement in SQLite's SQL."""
    for pattern, replacement in _TRANSLATIONS:
        sql = pattern.sub(replacement, sql)
    places = iter(range(1, sql.count("?") + 1))
    return re.sub(r"\?(\d*)", lambda found: f"${found[1] or next(places)}", sql)


_OR: Final = re.compile(r"INSERT OR (REPLACE|IGNORE) INTO (\w+)")
_UPDATED: Final = re.compile(r" ON CONFLICT \((.*?)\) DO UPDATE")
_VALUES: Final = re.compile(r"(?<= VALUES )(\(.*?\))(?= ON CONFLICT |$)")


@cache
def _of_rows(sql: str, count: int) -> str:
    """Return the INSERT of so many rows, for that of one, as Postgres is asked for it."""
    return translate(_VALUES.sub(lambda values: ", ".join([values[0]] * count), sql))


def _batches(sql: str, rows: Sequence[Row]) -> Iterator[tuple[str, Sequence[object]]]:
    """Yield statements that are few, with their values, and together one for each row."""
    if updated := _UPDATED.search(sql):
        # One statement may not change a row twice. Columns of keys come first.
        key = updated[1].count(",") + 1
        rows = list({row[:key]: row for row in rows}.values())
    at, at_once = 0, _ROWS_AT_ONCE if " VALUES (" in sql else 1
    while at < len(rows):
        # Powers of two, so that each statement is prepared in a few forms only.
        count = 1 << (min(len(rows) - at, at_once).bit_length() - 1)
        yield _of_rows(sql, count), [*chain(*rows[at : at + count])]
        at += count


# Numbers and texts are sent without a type: each place says what it takes, and a statement is
# prepared once, whatever it is carried out with.
class _NumberDumper(Dumper):
    oid = 0

    def dump(self, obj: int) -> Buffer:
        return b"%d" % obj


class _TextDumper(StrDumperUnknown):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace(_NUL, STORED_NUL) if _NUL in obj else obj)


class _TextLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        text = str(data, "utf-8")
        return text.replace(STORED_NUL, _NUL) if STORED_NUL in text else text


class PostgresDatabase:
    """One schema of a database; one transaction at a time."""

    is_shared = True

    def __init__(self, url: str, schema: Schema) -> None:
        self._url = url
        self._schema = schema
        self._place = place_of(url)
        self._idle: list[_Connection] = []
        """Those that nobody uses at the moment."""
        self._writing = asyncio.Lock()
        self._reading = asyncio.Semaphore(_READERS)
        self._replacing: dict[str, str] = {}
        """The end of an INSERT OR REPLACE, by table."""
        self._closed = False

    @classmethod
    async def open(cls, url: str, schema: Schema) -> PostgresDatabase:
        """Connect, and bring the tables to the current version; see `open_tables`."""
        database = cls(url, schema)
        try:
            await database._migrate()
            database._replacing = dict(await database.select(_REPLACING, (schema.name,)))
        except BaseException:
            await database.close()
            raise
        return database

    async def close(self) -> None:
        """Let go of the connections; a transaction that is being written is finished."""
        self._closed = True
        async with self._writing:
            while self._idle:
                await self._idle.pop().close()

    async def select(self, sql: str, values: Sequence[object] = ()) -> list[TupleRow]:
        """Return every row of a query."""
        async with self._reading, self._connection() as connection:
            cursor = await connection.execute(translate(sql), values, binary=True)
            async with cursor:
                return await cursor.fetchall()

    async def insert(self, sql: str, values: Sequence[object]) -> int:
        """Carry out one statement in a transaction of its own; the number of the row it made."""
        sql = f"{translate(self._without_or(sql))} RETURNING *"  # numbers are first columns
        async with self._transaction() as connection:
            cursor = await connection.execute(sql, values, binary=True)
        row = await cursor.fetchone()
        return row[0] if row is not None else 0

    async def write(self, statements: Iterable[Statement]) -> None:
        """Carry out all statements in one transaction, or none of them; in one round trip."""
        async with self._transaction() as connection:
            cursor = connection.cursor()
            for sql, rows in statements:
                for many, values in _batches(self._without_or(sql), rows):
                    await cursor.execute(many, values)

    def _without_or(self, sql: str) -> str:
        """Return an INSERT OR REPLACE, or OR IGNORE, as Postgres has it; others as they are."""
        if (found := _OR.match(sql)) is None:
            return sql
        conflict = self._replacing[found[2]] if found[1] == "REPLACE" else " ON CONFLICT DO NOTHING"
        return f"INSERT INTO {sql[found.start(2) :]}{conflict}"

    async def notify(self, message: str) -> None:
        """Send a message to everybody who listens on this database."""
        await self.select(f"SELECT pg_notify('{_CHANNEL}', ?)", (message,))

    async def messages(self) -> AsyncIterator[str]:
        """Yield an empty message, and every later one until the connection is lost."""
        async with self._connection() as connection:
            try:
                await connection.execute(f"LISTEN {_CHANNEL}")
                yield ""
                async for message in connection.notifies():
                    yield message.payload
            finally:
                await connection.close()

    @asynccontextmanager
    async def alone(self, what: str) -> AsyncIterator[None]:
        """Do something that no other kernel does at the same time, by its name.

        Who takes longer than seconds may be alone no more: constraints of the tables are to hold.
        """
        async with self._connection() as connection:
            await connection.execute(_ALONE, prepare=False)
            await connection.execute("SELECT pg_advisory_xact_lock(hashtext($1))", (what,))
            yield
            with suppress(psycopg.OperationalError):  # the server has ended it
                await connection.execute("ROLLBACK")

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[_Connection]:
        """Gather statements into one transaction, which is sent as a whole and then waited for."""
        async with self._writing, self._connection() as connection, connection.pipeline():
            await connection.execute("BEGIN")
            yield connection
            await connection.execute("COMMIT")

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[_Connection]:
        """Lend a connection; one that is within a transaction afterwards, or lost, is closed."""
        if self._closed:
            raise kernel_is_closing()
        try:
            connection = await self._connect_or_reuse()
            try:
                yield connection
            finally:
                is_idle = connection.info.transaction_status == TransactionStatus.IDLE
                if is_idle and not self._closed:
                    self._idle.append(connection)
                else:
                    await connection.close()
        except psycopg.Error as error:
            raise self._failure(error) from error

    async def _connect_or_reuse(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            with suppress(psycopg.OperationalError):
                # Without waiting: first what the server has said at last, then the end.
                for _ in range(2):
                    connection.pgconn.consume_input()
                return connection
            _log.info("a connection to the store %s was ended by it", self._place)
            await connection.close()
        connection = await psycopg.AsyncConnection.connect(
            self._url,
            autocommit=True,
            prepare_threshold=0,
            cursor_factory=psycopg.AsyncRawCursor,
            connect_timeout=_CONNECT_SECONDS,
            tcp_user_timeout=_CONNECT_SECONDS * 1000,
            fallback_application_name="antiphon",
        )
        connection.prepared_max = 500  # more than there are statements
        for kind, dumper in ((int, _NumberDumper), (bool, _NumberDumper), (str, _TextDumper)):
            connection.adapters.register_dumper(kind, dumper)
        connection.adapters.register_loader("text", _TextLoader)
        await connection.execute(_SETTINGS.format(schema=self._schema.name), prepare=False)
        return connection

    def _failure(self, error: psycopg.Error) -> AntiphonError:
        if error.sqlstate == FENCE_STATE:
            return FenceError(**json.loads(error.diag.message_detail or "{}"))
        name = re.search(r"=\((.*)\)", error.diag.message_detail or "")
        if name is not None and error.diag.constraint_name in _NAMES:
            return TakenError(name[1])
        return self._failed(str(error).strip())

    def _failed(self, why: str) -> AntiphonError:
        return storage_failed(
            f"The store {self._place} could not be used: {why}. Nothing was acknowledged;"
            " see that its Postgres runs and can be reached, then try again.",
            store=self._place,
        )

    async def _migrate(self) -> None:
        schema = self._schema
        async with self._connection() as connection, connection.transaction():
            # Until no other kernel changes the tables; the number is this program's alone.
            await connection.execute("SELECT pg_advisory_xact_lock(6245720031)")
            await connection.execute(_VERSION_TABLE.format(schema=schema.name), prepare=False)
            cursor = await connection.execute("SELECT version, usable_from FROM schema")
            version, usable_from = await cursor.fetchone() or (0, 0)
            if usable_from <= schema.newest < version:
                return  # a newer antiphon's, which says that this one may use it
            if (refusal := schema.refusal(version)) is not None:
                raise self._failed(f"the schema {schema.name!r} {refusal}")
            for number, sql in schema.steps(version):
                await connection.execute(
                    f"{sql} DELETE FROM schema;"
                    f" INSERT INTO schema VALUES ({number}, {schema.usable_from});",
                    prepare=False,
                )


def place_of(url: str) -> str:
    """Return how a database is called in messages: without a password.

    Raises storage_failed for a URL in which parts of a password may be something else.
    """
    defaults = {"host": "localhost", "port": 5432, "dbname": ""}
    try:
        place = "{host}:{port}/{dbname}".format(**(defaults | conninfo_to_dict(url)))
    except psycopg.ProgrammingError:
        place = ""
    if re.fullmatch(r"[^@]*:[\d,]+/[^@]*", place) is None:
        # The library's own message holds all of it.
        raise storage_failed(
            "The URL of the store cannot be read: it is to look like"
            " postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with % codes for special characters.",
        )
    return place
