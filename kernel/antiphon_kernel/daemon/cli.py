"""The kernel's own command line: `serve`, and commands about a data folder as a whole.

All but `serve` work beside a kernel that runs, on a copy of its journal; only `restore` needs it to
be gone. Each imports what it needs itself: a kernel takes a second to import.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click

from antiphon_kernel.client.address import KernelAddress
from antiphon_kernel.client.ownership import check_ownership, known_files
from antiphon_kernel.client.trust import (
    is_registered,
    is_trusted,
    is_trusted_file,
    trust,
    trust_file,
)
from antiphon_kernel.client.usage import CommandGroup, data_option, refuse_password, store_option
from antiphon_kernel.daemon.data_folder import DataFolderInUse, hold_folder
from antiphon_kernel.daemon.idle_shutdown import IDLE_SECONDS, IdlePolicy
from antiphon_kernel.text.sanitize import sanitize
from antiphon_kernel.types.clock import SystemClock, iso_time
from antiphon_kernel.types.constants import (
    CONFIG_FILE,
    DATA_FOLDER,
    DEFAULT_CONTEXT,
    MCP_FILE,
    ExitCode,
)
from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.quoting import count_of, quote

if TYPE_CHECKING:
    from antiphon_kernel.config import ProjectServer
    from antiphon_kernel.maintenance import AuditEvent

_SHOWN: Final = 100
"""Code points of a command that are printed where a line is for people."""

_WITH_LAST_CLIENT: Final = IdlePolicy(before_first_client=60.0, after_last_client=10.0)
"""Long enough for a slow start, a reconnect, a restart."""

_data = data_option(default=DATA_FOLDER)
_json = click.option("--json", "as_json", is_flag=True, help="Print one line of JSON.")


def _host_and_port(value: str) -> tuple[str, int]:
    """Return the parts of `HOST:PORT`, in which an IPv6 address is in brackets."""
    with suppress(ValueError):
        parts = urlsplit(f"//{value}")
        if parts.hostname is not None and parts.port is not None:
            return parts.hostname, parts.port
    raise click.BadParameter(f"{value!r} is not HOST:PORT")


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """The antiphon kernel, without the app."""


@main.command("serve")
@data_option()
@click.option(
    "--project",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Folder in which tools work.  [default: the one that has --data as its .antiphon, else the"
    " current one]",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="TCP port on the loopback interface; 0 takes the last one again, or any free one.",
)
@store_option
@click.option(
    "--listen",
    metavar="HOST:PORT",
    type=_host_and_port,
    help="With --store: where other kernels reach this one, and clients by a proxy."
    "  [default: the loopback interface, any free port]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the address as one line of JSON.")
@click.option(
    "--play",
    "recordings",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="A recording that a scripted model plays; several make several models.",
)
@click.option("--demo", is_flag=True, help="Play the demo's recordings unless --play names others.")
@click.option("--local", is_flag=True, help="Let the small local model write instead.")
@click.option(
    "--speed",
    type=click.FloatRange(0.1, 1000),
    default=1.0,
    show_default=True,
    help="How much faster than recorded.",
)
@click.option(
    "--idle",
    type=click.FloatRange(0),
    help="End after so many seconds without a client; 0: never."
    f"  [default: {IDLE_SECONDS}; with --store 0]",
)
@click.option(
    "--exit-with-last-client",
    "with_last_client",
    is_flag=True,
    help="End shortly after the last client has left; at once when standard input is a pipe that"
    " whoever started the kernel has closed.",
)
def serve(
    data: Path | None,
    project: Path | None,
    as_json: bool,
    idle: float | None,
    with_last_client: bool,
    **given: Any,
) -> None:
    """Serve a project's documents until SIGTERM, Ctrl+C or long idleness.

    Exit codes: 0 ended as asked, 1 failed, 2 wrong arguments, 4 another kernel has the folder, 5
    the folder is not trusted.
    """
    from antiphon_kernel.daemon.run import DaemonSettings, run_kernel

    if given["listen"] is not None and given["store"] is None:
        raise click.UsageError("--listen is for kernels that share a database: name it by --store")
    if idle is None:
        idle = IDLE_SECONDS if given["store"] is None else 0.0
    alone = idle or None
    if project is None:
        project = data.absolute().parent if data and data.name == DATA_FOLDER else Path()
    settings = DaemonSettings(
        data=(data or project / DATA_FOLDER).absolute(),
        project=project.resolve(),
        idle_policy=_WITH_LAST_CLIENT if with_last_client else IdlePolicy(alone, alone),
        starter=_pipe_of_starter() if with_last_client else None,
        **given,
    )

    def ready(address: KernelAddress) -> None:
        if as_json:
            click.echo(address.model_dump_json())
        else:
            click.echo(f"antiphon kernel {address.pid} serves {settings.project}")
            click.echo(f"  files   {settings.data}")
            click.echo(f"  sync    {address.sync}/{DEFAULT_CONTEXT}")
            click.echo(f"  socket  {address.socket}")
            click.echo("Ctrl+C ends it.")

    with _failures(
        in_use="Use that one, or another --data.",
        before=f"the kernel cannot serve {settings.data}: ",
        after="",
    ):
        run_kernel(settings, ready)


@main.command("backup")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@_data
@store_option
@_json
def backup_command(file: Path, data: Path, store: str | None, as_json: bool) -> None:
    """Write everything that is on disk now, or in a database, to FILE, which must not exist.

    The kernel may be running. Who may join is not part of a backup.

    Exit codes: 0 written, 1 it could not be.
    """
    from antiphon_kernel.storage import JOURNAL_FILE, back_up

    with _failures(as_json), _in_files(data, store) as folder:
        size = back_up(folder / JOURNAL_FILE, file.absolute())
        _say(
            as_json,
            {"file": str(file.absolute()), "bytes": size},
            f"{file}: {size} bytes; `antiphon restore {file}` brings it back.",
        )


@main.command("restore")
@click.argument("file", type=click.Path(dir_okay=False, exists=True, path_type=Path))
@_data
@store_option
@_json
def restore_command(file: Path, data: Path, store: str | None, as_json: bool) -> None:
    """Bring a backup back: FILE becomes the kernel's journal, under a new epoch.

    No kernel may be running on the folder. The journal that was there is kept beside the new one.
    Replicas of what was there before are refused, not merged. A database has to be empty.

    Exit codes: 0 restored, 1 it could not be, 4 a kernel is running.
    """
    from antiphon_kernel.maintenance.restore import restore

    with _failures(as_json):
        if store is None:
            with hold_folder(data):
                done = asyncio.run(restore(file, data, SystemClock()))
        else:
            from antiphon_kernel.maintenance.move import move_to_database

            with tempfile.TemporaryDirectory(prefix="antiphon-restore-") as folder:
                done = asyncio.run(restore(file, Path(folder), SystemClock()))
                asyncio.run(move_to_database(Path(folder), store))
        place = data if store is None else "the database"
        said = [f"{count_of(done.contexts, 'context')} restored into {place}."]
        if done.damaged:
            said.append(f"Damaged in the backup already: {', '.join(done.damaged)}.")
        if done.aside is not None:
            said.append(f"What was there before is {done.aside}.")
        fields = {
            "contexts": done.contexts,
            "damaged": list(done.damaged),
            "before": str(done.aside) if done.aside is not None else None,
        }
        _say(as_json, fields, "\n".join(said))


@main.command("move")
@click.option("--from", "source", metavar="URL", callback=refuse_password)
@click.option("--to", "target", metavar="URL|DIR", required=True, callback=refuse_password)
@_data
@_json
def move_command(source: str | None, target: str, data: Path, as_json: bool) -> None:
    """Copy everything from a data folder into a database of Postgres, or back.

    With --to URL everything of the folder goes into the database, with --from URL --to DIR
    everything in the database into the data folder DIR. All of it is there at the end, or nothing;
    what was copied from is not changed. No kernel may be running on either. A password is for
    PGPASSWORD or ~/.pgpass.

    Exit codes: 0 moved, 1 it could not be, 2 wrong arguments, 4 a kernel is running on the folder.
    """
    if not (source or target).startswith(("postgresql://", "postgres://")):
        raise click.UsageError("a database is named as postgresql://USER@HOST/NAME")
    with _failures(as_json):
        from antiphon_kernel.maintenance.move import move_from_database, move_to_database

        if source is None:
            is_trusted(data)
            with hold_folder(data):
                rows = asyncio.run(move_to_database(data, target))
        else:
            with hold_folder(Path(target)):
                rows = move_from_database(source, Path(target))
        said = (
            f"{rows} rows of {source or data} are in {target}, and were compared. What they were"
            " copied from is as it was: see that nobody goes on writing there."
        )
        _say(as_json, {"rows": rows}, said)


@main.command("doctor")
@_data
@store_option
@_json
def doctor_command(data: Path, store: str | None, as_json: bool) -> None:
    """Check everything that must hold for what is stored; nothing is changed.

    The kernel may be running. `antiphon doctor --env` says instead what of terminal, programs,
    libraries, keys of models and agents is on this machine, and what each changes.

    Exit codes: 0 all is well, 1 something was found, or nothing could be read.
    """
    from antiphon_kernel.maintenance.run_checks import run_checks

    with _failures(as_json), _in_files(data, store) as folder:
        report = asyncio.run(run_checks(folder))
        lines = [sanitize(str(finding)) for finding in report.all()]
        contexts = len(report.contexts)
        transactions = sum(one.transactions for one in report.contexts)
        found = count_of(len(lines), "finding") if lines else "all is well"
        size = f"{count_of(contexts, 'context')}, {count_of(transactions, 'transaction')}"
        lines.append(f"{size}: {found}.")
        _say(as_json, report.as_json(), "\n".join(lines))
        if not report.clean:
            sys.exit(ExitCode.FAILED)


@main.command("models")
@click.option("--project", type=click.Path(path_type=Path), required=True)
def models_command(project: Path) -> None:
    """Print as JSON which keys, models and agents a kernel of PROJECT finds; no key's value."""
    from platformdirs import user_config_path

    from antiphon_kernel.config import KEY_VARIABLES, load_config

    config, _ = load_config(user_config_path("antiphon"), project, os.environ, is_trusted_file)
    names = sorted({one for names in KEY_VARIABLES.values() for one in names})
    is_set = {name: "set" if os.environ.get(name, "").strip() else None for name in names}
    rows = [(f"${name}", found, "models that need this key") for name, found in is_set.items()]
    models: list[tuple[str, str | None]] = [(one.name, str(one.kind)) for one in config.models]
    models += [(one.name, shlex.join(one.command)) for one in config.agents]
    rows += [(f"@{name}", found, "answers to messages that name it") for name, found in models]
    rows += [("a fault", str(one), "nothing: it is left out") for one in config.problems]
    click.echo(json.dumps(rows))


@main.command("trust")
@_data
@click.option("--yes", is_flag=True, help="Do not ask.")
def trust_command(data: Path, yes: bool) -> None:
    """Show what the data folder DATA and its configuration hold, and trust them from now on."""
    from antiphon_kernel.config import read_untrusted
    from antiphon_kernel.maintenance import survey

    with _failures():
        check_ownership(data)
        config = data / CONFIG_FILE
        content = read_untrusted(config)
        is_new_config = content is not None and not is_trusted_file(config, content)
        has_data, servers = bool(known_files(data)), _servers_of(data)
        if not has_data and content is None and not servers:
            what = f"there is no data of antiphon in {sanitize(str(data))}"
            click.echo(f"antiphon: {what}: there is nothing to trust.", err=True)
            sys.exit(ExitCode.FAILED)
        is_new_data = has_data and not is_registered(data)
        servers = [one for one in servers if not is_trusted_file(one.path, one.content)]
        if not is_new_data and not is_new_config and not servers:
            click.echo(sanitize(f"{data} is trusted already."))
            return
        for line in survey(data, SystemClock().now_ms()) if is_new_data else ():
            click.echo(sanitize(line))
        if is_new_config:
            click.echo(sanitize(f"{config} says"))
            for line in (content or b"").decode("utf-8", "replace").splitlines():
                click.echo(f"  {sanitize(line)}")
        if not yes and not sys.stdin.isatty():
            for one in servers:
                click.echo(sanitize(one.shown))
            raise click.UsageError("nobody can be asked: say --yes to trust this folder")
        if not yes and (is_new_data or is_new_config):
            click.confirm("Trust it?", abort=True, err=True)
        if is_new_data:
            trust(data)
            click.echo(sanitize(f"{data} is trusted from now on."))
        if is_new_config:
            trust_file(config, content or b"")
            until = "a kernel that runs reads it when it is started again"
            click.echo(sanitize(f"{config} is trusted as it is now; {until}."))
        for one in servers:
            click.echo(
                f"{MCP_FILE} names an MCP server, which the kernel runs or calls for models:"
            )
            click.echo(sanitize(one.shown))
            if yes or click.confirm("Trust this server?", err=True):
                trust_file(one.path, one.content)
                click.echo(
                    sanitize(f"{quote(one.name)} is trusted as it is now, from the next start on.")
                )


def _servers_of(data: Path) -> list[ProjectServer]:
    """Return the MCP servers that the project of a data folder names."""
    from antiphon_kernel.config import project_servers, read_untrusted

    path = data.parent.resolve() / MCP_FILE
    content = read_untrusted(path) if data.name == DATA_FOLDER else None
    try:
        return [] if content is None else list(project_servers(path, content))
    except ValueError:
        return []  # the kernel says why


@main.command("log")
@click.option("--context", metavar="LABEL", help="Only this context, and who joined.")
@click.option("--limit", type=click.IntRange(1), help="Only the last so many events.")
@_data
@store_option
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON an event.")
def log_command(
    context: str | None, limit: int | None, data: Path, store: str | None, as_json: bool
) -> None:
    """Print who joined, wrote and ran what, oldest first.

    Exit codes: 0 printed, 1 nothing could be read.
    """
    from antiphon_kernel.maintenance.audit_log import audit_log

    with _failures(as_json), _in_files(data, store) as folder:
        events = asyncio.run(audit_log(folder, context))
        for event in events[-limit:] if limit is not None else events:
            line = json.dumps(event.as_json()) if as_json else sanitize(_line(event))
            click.echo(line)


def _line(event: AuditEvent) -> str:
    from antiphon_kernel.maintenance import AuditKind

    words = [iso_time(event.time), event.username]
    if event.kind is AuditKind.JOINED:
        words += ["joined via", event.what]
    elif event.kind is AuditKind.DECIDED:
        words.append(event.what)
    else:
        words += [str(event.kind), "in", event.context or ""]
    if event.kind is AuditKind.WROTE:
        words.append(f"({event.what})")
        if event.count > 1:
            words.append(f"{event.count} times until {iso_time(event.until)}")
        words += [block.rpartition(".")[2] for block in event.blocks[:5]]
    elif event.kind not in (AuditKind.JOINED, AuditKind.DECIDED):
        what = " ".join(event.what.split())
        words.append(what if len(what) <= _SHOWN else what[: _SHOWN - 1] + "…")
    # One line: in a journal that others wrote, labels and names may hold anything.
    return " ".join(" ".join(words).split())


@contextmanager
def _in_files(data: Path, store: str | None) -> Iterator[Path]:
    """Give the data folder, or one with a copy of what is in a database now."""
    if store is None:
        is_trusted(data)
        yield data
        return
    from antiphon_kernel.maintenance.move import copy_database

    with tempfile.TemporaryDirectory(prefix="antiphon-copy-") as folder:
        copy_database(store, Path(folder))
        yield Path(folder)


def _say(as_json: bool, fields: dict[str, Any], text: str) -> None:
    click.echo(json.dumps(fields) if as_json else text)


@contextmanager
def _failures(
    as_json: bool = False,
    *,
    in_use: str = "End that one first.",
    before: str = "",
    after: str = ". Check the folder and the disk.",
) -> Iterator[None]:
    """A failure is a sentence on standard error and an exit code.

    Args:
        in_use: what to do about another kernel that has the folder.
        before, after: what is said around an OSError.
    """
    try:
        yield
    except DataFolderInUse as error:
        click.echo(f"antiphon: {error} {in_use}", err=True)
        sys.exit(ExitCode.FOLDER_IN_USE)
    except AntiphonError as error:
        if as_json:
            click.echo(json.dumps({"error": error.as_json()}))
        click.echo(f"antiphon: {sanitize(error.message)}", err=True)
        untrusted = error.code is ErrorCode.UNTRUSTED_FOLDER
        sys.exit(ExitCode.UNTRUSTED_FOLDER if untrusted else ExitCode.FAILED)
    except OSError as error:
        click.echo(f"antiphon: {before}{error}{after}", err=True)
        sys.exit(ExitCode.FAILED)
    except ImportError as error:
        needed = f"a database needs a library that is not here ({error})"
        click.echo(f"antiphon: {needed}: install antiphon[postgres].", err=True)
        sys.exit(ExitCode.FAILED)


def _pipe_of_starter() -> int | None:
    """Return the descriptor of standard input if it is a pipe."""
    try:
        return 0 if stat.S_ISFIFO(os.fstat(0).st_mode) else None
    except OSError:
        return None
