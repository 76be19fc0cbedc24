"""The commands and their options; what each does is in a module of its own.

Heavy imports happen inside the commands that need them: `antiphon call` must not wait for Textual.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import click
from click.shell_completion import CompletionItem

from antiphon.cli import chat, inspect, keeping
from antiphon.cli.drift import drift
from antiphon.cli.errors import CommandError, KernelCommand, require_library
from antiphon.cli.export import SIZE, export
from antiphon.cli.kernel_option import (
    AS_JSON,
    AS_KIND,
    AS_NAME,
    DATA,
    KernelTarget,
    kernel_options,
    own_kernel,
    print_result,
    run_with_kernel,
)
from antiphon.cli.opening import open_on_terminal, replay, require_terminal
from antiphon.cli.share import invite, share
from antiphon.cli.shell_completion import complete_context, complete_tool, completion
from antiphon.cli.signals import default_sigint, run
from antiphon.locations import chosen_data, project_of_data, project_root
from antiphon_kernel.client.usage import CommandGroup, exit_code, is_typed
from antiphon_kernel.types.constants import DEFAULT_CONTEXT, DEMO_PROJECT, ExitCode
from antiphon_kernel.types.errors import AntiphonError

if TYPE_CHECKING:
    from antiphon.options import AppOptions
    from antiphon_kernel.client.tool_client import ToolClient

_context = click.option(
    "--context",
    metavar="CONTEXT",
    shell_complete=complete_context,
    help="Id or label of the context.  [default: default]",
)


_WITH_LINE = re.compile(r"(.+?):([0-9]{1,9})(?::[0-9]*)?:?")
"""A path with a line, and perhaps a column, as compilers print it."""


def _split_line(argument: str) -> tuple[Path, int | None]:
    """Return the path in an argument, and the line behind it, counted from 0."""
    found = None if Path(argument).exists() else _WITH_LINE.fullmatch(argument)
    if found is None:
        return Path(argument), None
    return Path(found[1]), max(int(found[2]) - 1, 0)


class _FileOrCommand(CommandGroup):
    """Commands, and a file in the place of one: the name of a command is always that."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except AntiphonError as error:
            raise CommandError(error.message, exit_code(error)) from error

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        is_path = "/" in cmd_name or "." in cmd_name or _split_line(cmd_name)[0].is_file()
        return _file_command(cmd_name) if found is None and is_path else found

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = super().shell_complete(ctx, incomplete)
        return found or [CompletionItem(incomplete, type="file")]


@click.group(
    cls=_FileOrCommand,
    invoke_without_command=True,
    subcommand_metavar="[FILE[:LINE] | COMMAND [ARGS]...]",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="antiphon")
@click.option(
    "--linear",
    is_flag=True,
    help="Read and write by the line, without a screen that is drawn: for screen readers, pipes"
    " and terminals that cannot move their cursor.",
)
@DATA
@_context
@AS_NAME
@click.pass_context
def antiphon(
    click_context: click.Context,
    linear: bool,
    data: Path | None,
    context: str | None,
    as_name: str | None,
) -> None:
    """An editor in which people and language models write in the same document at the same time.

    Without a command: open the app on this project's kernel, starting it if none runs. The project
    is the nearest folder upwards with .antiphon or .git in it, else the current one.

    With a file of the project: open the app with that file, at a line if one is given.

    Exit codes: 0 ended as asked, 1 the app failed, 2 wrong arguments or an unfit terminal, 3 no
    kernel could be found, reached or started, 5 the data folder is not trusted (`antiphon trust`).
    """
    command = click_context.invoked_subcommand
    if command is not None:
        if command in antiphon.commands and any(map(is_typed, click_context.params)):
            raise click.UsageError(
                "options go after the command: "
                f"antiphon {click_context.invoked_subcommand} --data ..."
            )
        return
    if linear:
        _read_and_write(data, context or DEFAULT_CONTEXT, as_name)
        return
    folder = chosen_data(data, project_root(Path.cwd()))
    _open_started(folder, project_of_data(folder), context=context, as_name=as_name)


def _file_command(argument: str) -> click.Command:
    """Return the command that opens the app with a file."""

    @click.command(help="Open the app with a file of the project.")
    @DATA
    @AS_NAME
    @click.pass_context
    def open_file(ctx: click.Context, data: Path | None, as_name: str | None) -> None:
        before = {} if ctx.parent is None else ctx.parent.params
        if before.get("linear"):
            raise CommandError("a file is shown on a screen: leave out --linear.", ExitCode.USAGE)
        data = data or before.get("data")
        project = project_of_data(data.absolute()) if data else project_root(Path.cwd())
        path, line = _split_line(argument)
        # Links are followed by the kernel, which opens them only inside the project.
        place = path.absolute().parent.resolve() / path.name
        if not place.is_file():
            what = "a folder" if place.is_dir() else "no file"
            raise CommandError(f"{path} is {what}: name a file of the project.", ExitCode.USAGE)
        if not place.is_relative_to(project):
            require_terminal()
            other = project_root(place.parent)
            question = f"{path} is outside of {project}. Open it with a kernel of {other}?"
            click.confirm(question, abort=True)
            data, project = None, other
        _open_started(
            chosen_data(data, project),
            project,
            context=before.get("context"),
            as_name=as_name or before.get("as_name"),
            file=(place.relative_to(project).as_posix(), line),
        )

    return open_file


def _read_and_write(data: Path | None, context: str, as_name: str | None) -> None:
    """Follow a context and send lines to it, without the app."""
    from antiphon_kernel.client.standard_streams import NoReaderError

    with default_sigint():
        from antiphon.cli.linear import LinearSession

    async def talk(calls: ToolClient) -> None:
        await LinearSession(calls, sys.stdin.buffer, sys.stdout.buffer).run(context)

    try:
        run_with_kernel(own_kernel(data, as_name), talk, once=False)
    except (KeyboardInterrupt, NoReaderError):
        return


for _command in (
    *(chat.tail, chat.send, chat.run, chat.acp, inspect.models, export, keeping.import_),
    *(inspect.blame, inspect.history, inspect.layout, inspect.keys, inspect.bench),
    *(*keeping.OF_KERNEL, keeping.trust, invite, share, drift, replay, completion),
):
    antiphon.add_command(_command)


_WRITTEN: Final = click.File("w", encoding="utf-8")


@antiphon.command()
@click.option(
    "--speed",
    type=click.FloatRange(0.1, 1000),
    default=1.0,
    show_default=True,
    help="How much faster than recorded the models write.",
)
@click.option(
    "--play",
    "recordings",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    help="A recording for models to play; several make several models.  [default: the demo's]",
)
@click.option(
    "--local",
    is_flag=True,
    help="Let a real, small model on this machine write; `make local-model` installs it.",
)
@click.option("--cast", type=_WRITTEN, help="Play without a terminal and write an asciicast.")
@click.option("--svg", type=_WRITTEN, help="Play without a terminal and write a moving picture.")
@SIZE
@DATA
@AS_NAME
def demo(
    speed: float,
    recordings: tuple[Path, ...],
    local: bool,
    cast: TextIO | None,
    svg: TextIO | None,
    size: tuple[int, int],
    data: Path | None,
    as_name: str | None,
) -> None:
    """Open the app on a throw-away kernel with a scripted model: no key, no network.

    It has a small project of its own, and leaves the files of this folder alone.
    From a second terminal in the same folder `antiphon join` comes in as a guest.

    With --cast or --svg it plays by itself until nobody writes any more, or the person of a
    recording has left, whose keys are pressed. See docs/recordings.md.
    """
    from antiphon.cli.launcher import program

    def play(options: AppOptions) -> None:
        from antiphon.export.cast import write_cast
        from antiphon.export.demo import play_demo
        from antiphon.export.svg import write_svg

        frames = run(lambda: play_demo(options, recordings, size=size, speed=speed))
        if cast is not None:
            cast.write(write_cast(frames, size, "antiphon"))
        if svg is not None:
            svg.write(write_svg(frames, size))

    arguments = ["--demo", "--exit-with-last-client", "--speed", str(speed)]
    for recording in recordings:
        arguments += ["--play", str(recording.absolute())]
    if local:
        arguments.append("--local")
    folder = (data or Path(tempfile.mkdtemp(prefix="antiphon-demo-"))).absolute()
    _open_started(
        folder,
        Path.cwd().resolve(),
        context=DEFAULT_CONTEXT,
        as_name=as_name,
        arguments=tuple(arguments),
        demo=True,
        show=play if cast or svg else open_on_terminal,
    )
    click.echo(f"What was written is kept, files of the demo in {folder / DEMO_PROJECT}.")
    click.echo(f"This opens it again:\n{program()} --data {folder}")


@antiphon.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@DATA
@click.option("--project", type=click.Path(file_okay=False, exists=True, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def serve(data: Path | None, project: Path | None, arguments: tuple[str, ...]) -> None:
    """Run the kernel in the foreground; `antiphon serve --help` lists its options."""
    folder = chosen_data(data, project or project_root(Path.cwd()))
    project = project.resolve() if project is not None else project_of_data(folder)
    keeping.run_kernel("serve", folder, [*arguments, "--project", str(project)])


@antiphon.command()
@click.argument("url", required=False)
@click.option(
    "--address",
    "prints_address",
    is_flag=True,
    help="Print where this project's kernel is, started if none runs, and end.",
)
@DATA
@_context
@AS_NAME
def join(
    url: str | None,
    prints_address: bool,
    data: Path | None,
    context: str | None,
    as_name: str | None,
) -> None:
    """Open the app on a kernel that runs: the newest one of yours for this folder, or URL.

    URL is what `antiphon invite` prints, or `sync` of `antiphon serve --json` with its token:
    ws://HOST:PORT/sync?token=... A token that is not in it is taken from ANTIPHON_TOKEN, else asked
    for. With - the URL is read from standard input. With ssh://[USER@]HOST[:PORT][/FOLDER] the
    kernel is one on HOST, reached through ssh as its user there.
    """
    if prints_address:
        _print_address(data)
        return
    from antiphon.cli.join import (
        FROM_INPUT,
        SshTunnel,
        parse_ssh_url,
        pick_guest_name,
        read_invitation,
        with_token,
    )
    from antiphon.locations import state_folder
    from antiphon.options import AppOptions

    if url is None:
        require_terminal()
        folder, is_demo = _find_running(data)
        if is_demo and as_name is None:
            as_name = pick_guest_name(folder)
        open_on_terminal(AppOptions(data=folder, context=context, as_name=as_name))
        return
    here = AppOptions(data=state_folder(), context=context, as_name=as_name)
    if url.startswith("ssh://"):
        target = parse_ssh_url(url)
        require_terminal()
        tunnel = SshTunnel(target)
        address = tunnel.open()
        try:
            open_on_terminal(replace(here, address=address))
        finally:
            tunnel.close()
        return
    address, named = with_token(read_invitation() if url == FROM_INPUT else url)
    require_terminal()
    open_on_terminal(replace(here, address=address, context=context or named))


@antiphon.command(cls=KernelCommand)
@click.argument("tool", required=False, shell_complete=complete_tool)
@click.argument("params", metavar="[JSON]", required=False)
@click.option(
    "--jsonl",
    is_flag=True,
    help='Read lines {"id", "tool", "params"} from standard input, answer each with one line.',
)
@AS_JSON
@kernel_options
@_context
@AS_NAME
@AS_KIND
def call(
    tool: str | None,
    params: str | None,
    jsonl: bool,
    as_json: bool,
    kernel: KernelTarget,
    context: str | None,
) -> None:
    """Call one of the kernel's tools and print its result.

    JSON holds the parameters; - reads them from standard input. `antiphon call kernel.tools` lists
    the tools. A kernel is started if none runs. With --jsonl a wrong line is answered with an error
    and the next one is read.

    Exit codes: 0 the call succeeded (with --jsonl: the input has ended), 1 it failed, 2 wrong
    arguments, 3 no kernel could be reached or started.
    """
    if jsonl == (tool is not None):
        raise click.UsageError("name a tool (antiphon call kernel.tools lists them), or --jsonl")

    given = sys.stdin.buffer.read() if params == "-" else params or ""

    async def ask(calls: ToolClient) -> None:
        from antiphon.cli.call import JsonlCaller, call_lines, dump_json_line, parse_params
        from antiphon.cli.stdio import lines

        caller = JsonlCaller(calls, context)
        if tool is None:
            await call_lines(caller, lines(sys.stdin.buffer), sys.stdout.buffer)
            return
        result = await caller.call(tool, parse_params(given))
        indent = None if as_json or not sys.stdout.isatty() else 2
        sys.stdout.buffer.write(dump_json_line(result, indent=indent).encode("utf-8") + b"\n")
        sys.stdout.buffer.flush()

    run_with_kernel(kernel, ask, once=not jsonl)


@antiphon.command()
@DATA
@click.option("--as", "as_name", metavar="NAME", help="Act as this program, made on first use.")
def mcp(data: Path | None, as_name: str | None) -> None:
    """Let an agent outside read and edit: an MCP server on standard input and output.

    Agents start it, for example after `claude mcp add antiphon -- antiphon mcp`. It passes on what
    they say to the kernel of the project, started if none runs, where a program has the name that
    it gives itself, unless --as names another. It ends with its input.
    """
    require_library("mcp", "MCP", "agents")
    with default_sigint():
        from antiphon.cli.mcp_bridge import McpBridge

    query = {"as": as_name} if as_name is not None else {}
    streams = sys.stdin.buffer, sys.stdout.buffer
    run(lambda: McpBridge(*streams, own_kernel(data).find, query).run())


def _print_address(data: Path | None) -> None:
    """Print the kernel's id and socket as one line; of several kernels that of this folder."""
    from antiphon.cli.launcher import ensure_kernel
    from antiphon_kernel.client.address import read_address
    from antiphon_kernel.client.discovery import running_kernels

    folder = data
    if folder is None and Path.cwd().resolve() == Path.home().resolve():
        folder = next((one.data for one in running_kernels() if not one.demo), None)
    address = read_address(ensure_kernel(folder))
    print_result({"kernel": address.kernel, "socket": address.socket}, True)


def _find_running(data: Path | None) -> tuple[Path, bool]:
    """The data folder of the kernel to join, and whether it is a demo."""
    from antiphon_kernel.client.discovery import kernel_at, newest_kernel, running_kernels

    if data is not None:
        if kernel_at(data) is None:
            raise CommandError(
                f"no kernel serves {data}: start one with `antiphon --data {data}`.",
                ExitCode.NO_KERNEL,
            )
        folder = data.absolute()
        return folder, any(one.demo for one in running_kernels() if one.data == folder)
    kernel = newest_kernel(Path.cwd().resolve())
    if kernel is None:
        raise CommandError(
            f"no kernel of yours runs for {Path.cwd()}: start one here with `antiphon` or"
            " `antiphon demo`, or name its address.",
            ExitCode.NO_KERNEL,
        )
    return kernel.data, kernel.demo


def _open_started(
    data: Path,
    project: Path,
    *,
    context: str | None,
    as_name: str | None,
    file: tuple[str, int | None] | None = None,
    arguments: tuple[str, ...] = (),
    demo: bool = False,
    show: Callable[[AppOptions], None] = open_on_terminal,
) -> None:
    """Show the app on a kernel of its own, started if none runs."""
    from antiphon.cli.launcher import KernelLauncher
    from antiphon.options import AppOptions

    if show is open_on_terminal:
        require_terminal()
    starter = KernelLauncher(data, project, arguments)
    options = AppOptions(
        data=data,
        context=context,
        file=file,
        as_name=as_name,
        project=data / DEMO_PROJECT if demo else None,
        demo=demo,
        restart=starter.restart,
        has_kernel=lambda: starter.look() is not None,
    )
    starter.start()
    show(options)  # the kernel comes up meanwhile
