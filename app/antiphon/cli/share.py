"""`antiphon invite` and `share`: a line or link that joins, guests over SSH, and their keys."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from antiphon.cli.errors import CommandError, KernelCommand, require_library
from antiphon.cli.kernel_option import (
    AS_JSON,
    DATA,
    KernelTarget,
    call_kernel,
    own_kernel,
    print_result,
    run_with_kernel,
)
from antiphon.time_format import to_the_minute
from antiphon_kernel.types.clock import iso_time
from antiphon_kernel.types.constants import ExitCode
from antiphon_kernel.types.errors import invalid_params, no_kernel
from antiphon_kernel.types.quoting import count_of, quote

if TYPE_CHECKING:
    from antiphon.hosts.host_address import HostAddress, HostOptions
    from antiphon_kernel.client.tool_client import ToolClient

_MINUTES: Final = {"m": 1, "h": 60, "d": 24 * 60, "w": 7 * 24 * 60}
_DURATION: Final = re.compile(r"([1-9][0-9]{0,5})([mhdw])")


def _minutes(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """Return `30m`, `12h`, `7d`, `2w` or `never` as minutes; never is 0."""
    if value is None or value == "never":
        return None if value is None else 0
    found = _DURATION.fullmatch(value)
    if found is None:
        expected = "expected 30m, 12h, 7d, 2w or never"
        raise click.BadParameter(f"{value!r} is no time: {expected}", context, option)
    return int(found[1]) * _MINUTES[found[2]]


_USES: Final = click.option(
    "--uses",
    type=click.IntRange(1, 1_000),
    help="How many clients or browsers may come in with it.  [default: any number]",
)


@click.command(cls=KernelCommand)
@click.option(
    "--role",
    type=click.Choice(["editor", "viewer", "agent", "source"]),
    required=True,
    help="What they may do: write, or only read; an agent is a model, a source a program.",
)
@click.option(
    "--name",
    metavar="NAME",
    help="Their username.  [default: guest, guest2, ..., another one for each]",
)
@click.option(
    "--expires",
    "minutes",
    metavar="DURATION",
    callback=_minutes,
    default="1d",
    show_default=True,
    help="When it stops to let anybody in: 30m, 12h, 7d, 2w or never.",
)
@_USES
@AS_JSON
@DATA
def invite(
    role: str, name: str | None, minutes: int, uses: int | None, as_json: bool, data: Path | None
) -> None:
    """Print one line that joins this kernel: antiphon join ws://...

    Whoever has the line can come in until it expires, is used up or is taken back (antiphon call
    kernel.revoke): hand it on as you would a password. The kernel keeps only a hash of it. It
    listens on this machine; from another one, forward the port (ssh -L).
    """
    wanted = {"role": role, "minutes": minutes, "name": name, "uses": uses}
    made, words = _invitation(own_kernel(data), wanted)
    if as_json:
        print_result(made, as_json)
        return
    line = str(made["join"])
    if sys.stdout.isatty():
        # For a person, who copies it into any shell, the address is quoted: zsh expands a `?`.
        *command, url = line.split()
        line = " ".join([*command, shlex.quote(url)])
    click.echo(line)
    click.echo(f"antiphon: {words}", err=True)


def _invitation(kernel: KernelTarget, wanted: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Make an invitation; return it, and words that say whom it lets in."""
    params = {key: value for key, value in wanted.items() if value is not None}
    made = call_kernel(kernel, "kernel.invite", params)
    until = f"until {to_the_minute(made['expires'])}" if "expires" in made else "for ever"
    article = "an" if wanted["role"] in ("editor", "agent") else "a"
    take_back = shlex.quote(json.dumps({"invitation": made["invitation"]}))
    return made, (
        f"lets in {made['username']}, {article} {wanted['role']}, {until};"
        f" antiphon call kernel.revoke {take_back} takes it back."
    )


LOOPBACK: Final = "127.0.0.1"
_ANY: Final = ("0.0.0.0", "::", "")
"""Addresses that stand for every interface."""


def _is_loopback(bind: str) -> bool:
    return bind in ("localhost", "::1") or bind.startswith("127.")


@click.command(cls=KernelCommand)
@click.option(
    "--role",
    type=click.Choice(["editor", "viewer"]),
    help="What those whose keys are named now may do: write, or only read.  [default: editor; with"
    " --web: viewer]",
)
@click.option("--web", is_flag=True, help="Print a link that opens the app in a browser.")
@_USES
@click.option("--url", metavar="URL", help="Address at which a proxy of yours serves the page.")
@click.option(
    "--github",
    "users",
    metavar="USER",
    multiple=True,
    help="Let this user of GitHub in, by the keys at https://github.com/USER.keys.",
)
@click.option(
    "--keys",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Let in whoever's public keys are in this file, as in authorized_keys.",
)
@click.option(
    "--name",
    metavar="NAME",
    help="Username of whoever has these keys.  [default: USER, or each key's comment]",
)
@click.option("--ask", is_flag=True, help="Ask in the app about keys that are not known.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    show_default=True,
    help="Port to listen on; 0 takes the last one again, or any free one.",
)
@click.option(
    "--bind",
    metavar="ADDRESS",
    default=LOOPBACK,
    show_default=True,
    help="Interface to listen on; 0.0.0.0 is all of them.",
)
@click.option(
    "--expires",
    "minutes",
    metavar="DURATION",
    callback=_minutes,
    help="When it ends by itself: 30m, 12h, 7d, 2w or never.  [default: never; the link of --web,"
    " which alone ends then: 1d]",
)
@click.option("--list", "lists", is_flag=True, help="Say who is here, and which keys let in whom.")
@click.option("--promote", metavar="NAME", help="Make somebody an editor.")
@click.option("--demote", metavar="NAME", help="Make somebody a viewer.")
@click.option("--kick", metavar="NAME", help="End what somebody has open; keep them out a while.")
@click.option("--end", "session", metavar="SESSION", help="End a session that --list names.")
@click.option("--reason", metavar="TEXT", help="Tell whom --kick or --end sends away why.")
@click.option("--stop", is_flag=True, help="End the sharing, with every guest's session.")
@AS_JSON
@DATA
def share(
    role: str | None,
    web: bool,
    uses: int | None,
    url: str | None,
    users: tuple[str, ...],
    files: tuple[Path, ...],
    name: str | None,
    ask: bool,
    port: int,
    bind: str,
    minutes: int | None,
    lists: bool,
    promote: str | None,
    demote: str | None,
    kick: str | None,
    session: str | None,
    reason: str | None,
    stop: bool,
    as_json: bool,
    data: Path | None,
) -> None:
    """Let people in over SSH by their keys, or in a browser by a link; print how they come in.

    They need nothing but ssh, or a browser. Nobody comes in whose key you have not named, here or
    with --ask in the app, or who does not have the link. It ends with --stop, with the kernel, or
    when its time is over.
    """
    from antiphon.cli.launcher import ensure_kernel, stop_host
    from antiphon.hosts.host_address import HostOptions
    from antiphon_kernel.client.address import read_address

    orders = (lists, promote, demote, kick, session, stop)
    if sum(1 for one in orders if one not in (None, False)) > 1:
        raise click.UsageError(
            "give one of --list, --promote, --demote, --kick, --end and --stop at a time"
        )
    if reason is not None and kick is None and session is None:
        raise click.UsageError("--reason goes with --kick NAME or --end SESSION")
    if web and (users or files or ask):
        raise click.UsageError("--web goes with a link, not with keys: share twice for both")
    if not web and (uses or url):
        raise click.UsageError("--uses and --url go with --web")
    why = {"reason": reason or ""}
    folder = ensure_kernel(data)
    kernel = KernelTarget(lambda: lambda: read_address(folder))
    if stop:
        stopped = stop_host(folder, "ssh") | stop_host(folder, "web")
        words = "Not shared any more." if stopped else "It was not shared."
        print_result({"stopped": stopped}, as_json, [words])
    elif promote is not None:
        _change(kernel, "kernel.role", {"principal": promote, "role": "editor"}, as_json)
    elif demote is not None:
        _change(kernel, "kernel.role", {"principal": demote, "role": "viewer"}, as_json)
    elif kick is not None:
        _change(kernel, "kernel.kick", {"principal": kick} | why, as_json)
    elif session is not None:
        _change(kernel, "session.end", {"session": session} | why, as_json)
    elif lists:
        _list(folder, kernel, as_json)
    elif web:
        wanted = {"role": role or "viewer", "name": name, "uses": uses}
        wanted["minutes"] = 24 * 60 if minutes is None else minutes
        options = HostOptions(kind="web", bind=bind, port=port, url=url)
        _share_web(folder, kernel, wanted, options, as_json)
    else:
        added = _add_keys(kernel, users, files, name, role)
        until = int(time.time() * 1_000) + minutes * 60_000 if minutes else None
        options = HostOptions(kind="ssh", bind=bind, port=port, ask=ask, until=until)
        _share(folder, kernel, added, options, as_json)


def _share(
    folder: Path,
    kernel: KernelTarget,
    added: list[dict[str, Any]],
    options: HostOptions,
    as_json: bool,
) -> None:
    from antiphon.hosts.host_address import running_host

    require_library("asyncssh", "sharing over SSH", "ssh")
    keys = call_kernel(kernel, "key.list", {})["keys"]
    good = [one for one in keys if one["state"] == "good"]
    if running_host(folder, "ssh") is None and not _is_loopback(options.bind) and not good:
        raise CommandError(
            f"listening on {options.bind} lets other machines connect, and nobody's key is known"
            " yet: name some with --github or --keys.",
            ExitCode.USAGE,
        )
    address = _started(folder, options)
    # What a guest types. The user name says nothing; it is there to be recognised.
    names = {one["username"] for one in added}
    user = f"{names.pop()}@" if len(names) == 1 else ""
    name = "localhost" if _is_loopback(address.bind) else address.bind
    line = f"ssh -p {address.port} {user}{socket.gethostname() if name in _ANY else name}"
    fields = {"line": line, **address.model_dump(exclude_none=True), "keys": good}
    print_result(fields, as_json, _described(address, line, good))


def _started(folder: Path, asked: HostOptions) -> HostAddress:
    """Return the running host, which is as it was asked for; raise CommandError if it is not."""
    from antiphon.cli.launcher import start_host

    running = start_host(folder, asked)
    if (
        asked.port not in (0, running.port)
        or asked.bind not in (LOOPBACK, running.bind)
        or (asked.ask and not running.ask)
        or asked.url not in (None, running.url)
    ):
        raise CommandError(
            f"this project is shared already, on {running.bind} port {running.port}"
            f" {'with' if running.ask else 'without'} --ask and {running.url or 'without --url'}:"
            " `antiphon share --stop` ends that.",
            ExitCode.USAGE,
        )
    return running


def _share_web(
    folder: Path, kernel: KernelTarget, wanted: dict[str, Any], options: HostOptions, as_json: bool
) -> None:
    require_library("textual_serve", "a browser", "web")
    address = _started(folder, options)
    made, words = _invitation(kernel, wanted)
    name = socket.gethostname() if address.bind in _ANY else address.bind
    link = f"{(address.url or f'http://{name}:{address.port}').rstrip('/')}/#{made['token']}"
    lines = [link, f"  {words}", "  It ends with antiphon share --stop, or with the kernel."]
    if _is_loopback(address.bind) and not address.url:
        lines.append("  This machine only reaches it; docs/web.md says how others do.")
    print_result({"link": link, "port": address.port, **made}, as_json, lines)


def _described(address: HostAddress, line: str, good: list[dict[str, Any]]) -> list[str]:
    lines = [line, f"  host key   {address.fingerprint} (ED25519)"]
    names = ", ".join(dict.fromkeys(f"{one['username']} ({one['role']})" for one in good))
    if address.ask:
        names += ("; " if names else "") + "others: you are asked in the app"
    lines.append(f"  comes in   {names or 'nobody yet: name keys with --github or --keys'}")
    if _is_loopback(address.bind):
        lines.append("  reached    from this machine only; docs/ssh.md says how from elsewhere")
    until = f" at {to_the_minute(iso_time(address.until))}," if address.until is not None else ""
    lines.append(f"  ends       with{until} antiphon share --stop, or with the kernel")
    return lines


def _change(kernel: KernelTarget, tool: str, params: dict[str, str], as_json: bool) -> None:
    """Change what somebody may do or has open, and say what has come of it."""
    from antiphon_kernel.types.roles import AccessRole

    told = call_kernel(kernel, tool, params)
    words = f"Ended {count_of(told['ended'], 'connection')}."
    if tool == "kernel.role":
        stands = AccessRole(told["role"]).described()
        words = f"{told['username']} is {stands} now. {words}"
    elif tool == "kernel.kick":
        words = f"{told['username']} is out until {to_the_minute(told['barred_until'])}. {words}"
    print_result(told, as_json, [words])


def _list(folder: Path, kernel: KernelTarget, as_json: bool) -> None:
    from antiphon.hosts.host_address import running_host

    async def ask(calls: ToolClient) -> tuple[Any, Any, Any]:
        members = (await calls.call("kernel.members", {}))["members"]
        own = (await calls.call("session.whoami", {}))["session"]
        return members, (await calls.call("key.list", {}))["keys"], own

    members, keys, own = run_with_kernel(kernel, ask, once=False)
    here = [
        {"username": one["username"], "role": one["role"], **session}
        for one in members
        if one["kind"] == "human"
        for session in one["sessions"]
        if "within" not in session and session["session"] != own
    ]
    ssh, web = running_host(folder, "ssh"), running_host(folder, "web")
    fields = {
        "shared": ssh.model_dump(exclude_none=True) if ssh is not None else None,
        "web": web.model_dump(exclude_none=True) if web is not None else None,
        "sessions": here,
        "keys": keys,
    }
    people = [one for one in members if one["kind"] == "human" and one["role"] != "author"]
    wide = max((len(one["username"]) for one in people), default=0)
    lines = presence_lines(here, wide) or ["Nobody is here."]
    present = {one["username"] for one in here}
    for one in people:
        if one["username"] not in present:
            until = one.get("barred_until")
            away = f"kicked, may come again {to_the_minute(until)}" if until else "away"
            lines.append(f"{one['username']:{wide}}  {one['role']:6}  {away}")
    lines += [f"{one['fingerprint']}  {one['username']}  {one['state']}" for one in keys]
    print_result(fields, as_json, lines)


def presence_lines(sessions: Iterable[dict[str, Any]], width: int) -> list[str]:
    """Return a line for each person and way in, names in `width` columns."""
    ways: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for one in sessions:
        ways.setdefault((one["username"], one["role"], one["via"]), []).append(one)
    return [
        f"{name:{width}}  {role:6}  over {via:4}  since"
        f" {to_the_minute(min(one['since'] for one in found))}  "
        + (count_of(len(found), "session") if found[1:] else f"session {found[0]['session'][-8:]}")
        for (name, role, via), found in ways.items()
    ]


def _add_keys(
    kernel: KernelTarget,
    users: tuple[str, ...],
    files: tuple[Path, ...],
    name: str | None,
    role: str | None,
) -> list[dict[str, Any]]:
    """Let the kernel know every key that the command line names."""
    from antiphon_kernel.types.ids import as_name
    from antiphon_kernel.types.public_keys import parse_public_key

    found: list[tuple[str, str]] = []
    for user in users:
        found += [(line, name or as_name(user)) for line in keys_of_user(user)]
    for file in files:
        for line in keys_in_file(file):
            comment = parse_public_key(line).comment.partition("@")[0]
            found.append((line, name or as_name(comment) or "guest"))
    if not found:
        if role is not None or name is not None:
            raise click.UsageError("--role and --name go with keys: --github USER or --keys FILE")
        return []

    wanted = {"role": role} if role else {}

    async def add(calls: ToolClient) -> list[dict[str, Any]]:
        added: list[dict[str, Any]] = []
        for line, username in found:
            # Of several keys of one person, those behind the first are of somebody known by now.
            known = name is not None or any(one["username"] == username for one in added)
            asked = {"key": line, "name": username, "known": known}
            added.append(await calls.call("key.add", asked | wanted))
        return added

    return run_with_kernel(kernel, add, once=False)


FORGE_VARIABLE: Final = "ANTIPHON_FORGE"
"""In the environment: another forge than GitHub that serves keys at /USER.keys."""

GITHUB: Final = "https://github.com"

LONGEST_ANSWER: Final = 200_000
"""Bytes of a file of keys."""

KEYS_AT_ONCE: Final = 50

_SECONDS: Final = 10.0
_USER: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})")


def keys_of_user(user: str) -> list[str]:
    """Return the lines of a user's public keys, as the forge shows them to everybody.

    Raises:
        AntiphonError: invalid_params if there is no such user or the user has no key that is taken;
            no_kernel if the forge cannot be reached.
    """
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, build_opener

    if not _USER.fullmatch(user):
        raise invalid_params(f"{quote(user)} cannot be a user of GitHub.", field="name")
    url = f"{os.environ.get(FORGE_VARIABLE, GITHUB).rstrip('/')}/{user}.keys"
    try:
        with build_opener().open(
            Request(url, headers={"User-Agent": "antiphon"}), timeout=_SECONDS
        ) as answer:
            body = answer.read(LONGEST_ANSWER + 1)
    except HTTPError as error:
        raise invalid_params(f"{url} answers with {error.code}: is the name right?") from error
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise no_kernel(
            f"{url} cannot be read ({reason}): try again, or give the keys in a file (--keys).",
        ) from error
    return _lines(body, url)


def keys_in_file(path: Path) -> list[str]:
    """Return the lines of a file of public keys.

    Raises:
        AntiphonError: invalid_params if it cannot be read, or holds no key or something else.
    """
    try:
        with path.open("rb") as file:
            body = file.read(LONGEST_ANSWER + 1)
    except OSError as error:
        raise invalid_params(f"{path} cannot be read: {error.strerror}.") from error
    return _lines(body, str(path))


def _lines(body: bytes, where: str) -> list[str]:
    from antiphon_kernel.types.public_keys import PublicKeyError, parse_public_key

    if len(body) > LONGEST_ANSWER:
        raise invalid_params(
            f"{where} has more than {LONGEST_ANSWER} bytes: it is no list of keys."
        )
    lines = [line.strip() for line in body.decode("utf-8", "replace").splitlines()]
    keys = [line for line in lines if line and not line.startswith("#")]
    for number, line in enumerate(keys, 1):
        try:
            parse_public_key(line)
        except PublicKeyError as error:
            raise invalid_params(f"Key {number} of {where}: {error}.") from error
    if not keys or len(keys) > KEYS_AT_ONCE:
        raise invalid_params(f"{where} has {len(keys)} keys: from 1 to {KEYS_AT_ONCE} are taken.")
    return keys
