"""Configuration of a kernel: tables of its files, and their values as they are read.

It is read from the user's file and the project's, and from the environment. What is wrong in a file
is a problem that is reported; everything else in it counts.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from antiphon_kernel.config.agents import AgentConfig, find_agents
from antiphon_kernel.config.api_keys import (
    KEY_VARIABLES,
    first_key,
    key_of,
    read_key_file,
)
from antiphon_kernel.config.project_servers import project_servers
from antiphon_kernel.mcp_servers import McpServerConfig
from antiphon_kernel.mcp_servers.server_config import SECONDS, VARIABLE_IN_TEXT
from antiphon_kernel.messages import ModelWindow
from antiphon_kernel.providers import (
    ApiKey,
    ModelConfig,
    ModelKind,
    ModelPrice,
    PermissionPolicy,
    ToolPermit,
)
from antiphon_kernel.providers.recording import load_recordings
from antiphon_kernel.registry import UNKNOWN_NAME, did_you_mean, param_error
from antiphon_kernel.text.simple_command import CommandPattern
from antiphon_kernel.text.toml_lines import (
    MAX_BYTES,
    ConfigSyntaxError,
    TomlFile,
    parse_toml,
)
from antiphon_kernel.types.constants import CONFIG_FILE, DATA_FOLDER, MCP_FILE
from antiphon_kernel.types.errors import AntiphonError
from antiphon_kernel.types.ids import NAME_LENGTH, SYSTEM_NAME, is_name
from antiphon_kernel.types.quoting import quote, truncate


def _web_address(url: str) -> str:
    """Return an address that names a server and nothing secret."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("an address such as http://127.0.0.1:8080/v1")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ValueError(
            "an address without user name, query or fragment: keys belong into key_env or key_file"
        )
    return url


VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")
"""Name of an environment variable that may hold a key."""


def _variable(name: str) -> str:
    if not VARIABLE.fullmatch(name):
        raise ValueError("the name of an environment variable, of A-Z, 0-9 and _; not the key")
    return name


def _command_pattern(text: str) -> str:
    CommandPattern.parse(text)
    return text


_Count = Annotated[int, Field(ge=1, le=10**9)]
_Dollars = Annotated[float, Field(ge=0, le=10**6, allow_inf_nan=False)]
_Glob = Annotated[str, Field(min_length=1, max_length=1_000)]
_Globs = Annotated[list[_Glob], Field(max_length=1_000)]


class ConfigTable(BaseModel):
    """Base of every table: nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PriceTable(ConfigTable):
    """Price in US dollars for a million tokens."""

    input: _Dollars
    output: _Dollars
    cached: _Dollars | None = None
    cache_write: _Dollars | None = None


class WindowTable(ConfigTable):
    """Limits in tokens."""

    input: _Count
    output: _Count | None = None
    total: _Count | None = None
    separate: bool = False


class PermissionsTable(ConfigTable):
    """Permissions of a model's tool calls."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)
    __pydantic_extra__: dict[str, Literal["allow", "ask", "deny"]]

    shell_allow: list[Annotated[str, AfterValidator(_command_pattern)]] = Field(
        default_factory=list, max_length=1_000
    )
    files_allow: _Globs = Field(default_factory=list)
    files_deny: _Globs | None = None


class ModelTable(ConfigTable):
    """One model."""

    kind: Annotated[ModelKind, Field(strict=False)]
    model: str = Field(min_length=1, max_length=4_096)
    base_url: Annotated[str, AfterValidator(_web_address)] | None = None
    key_env: Annotated[str, AfterValidator(_variable)] | None = Field(default=None, max_length=200)
    key_file: str | None = Field(default=None, min_length=1)
    max_tokens: _Count | None = None
    thinking: int | None = Field(default=None, ge=0, le=10**9)
    system: str = Field(default="", max_length=50_000)
    tools: list[str] | None = None
    price: PriceTable | None = None
    window: WindowTable | _Count | None = None
    permissions: PermissionsTable | None = None


class McpTable(ConfigTable):
    """One MCP server; its texts may name variables of the environment: `${NAME}`."""

    command: list[str] = Field(default_factory=list, max_length=100)
    """Program and arguments of one that is run."""
    env: dict[str, str] = Field(default_factory=dict, max_length=100)
    """Variables that its process gets beside the kernel's own."""
    url: str | None = None
    """Address of one that is reached over HTTP."""
    token_env: Annotated[str, AfterValidator(_variable)] | None = None
    """Variable of the environment that holds the token for the address."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Other headers of requests to the address."""
    timeout: float = Field(default=SECONDS, gt=0, le=86_400, allow_inf_nan=False)
    """Seconds that a call may take."""


class AgentTable(ConfigTable):
    """One agent, which is a program that speaks ACP."""

    command: list[Annotated[str, Field(max_length=4_096)]] = Field(min_length=1, max_length=100)
    """Program and arguments."""
    env: dict[str, str] = Field(default_factory=dict, max_length=100)
    """Variables that its process gets beside the kernel's own."""
    cwd: str | None = Field(default=None, min_length=1, max_length=4_096)
    """Folder that it is started in, relative to the file; the project if absent."""
    permissions: PermissionsTable | None = None


class ContextTable(ConfigTable):
    """Settings of contexts and turns."""

    default_model: str | None = None
    """The one that answers messages that name none; the first if absent."""
    budget: _Count | None = None
    """Tokens of a request beyond which the context is compacted; as the model's window allows if
    absent."""
    max_rounds: int | None = Field(default=None, ge=1, le=10_000)
    """Rounds of one turn; the built-in limit if absent."""
    max_turn_tokens: _Count | None = None
    """Tokens of all requests and answers of one turn."""
    max_turn_dollars: _Dollars | None = None
    max_turn_seconds: _Count | None = None
    record_presence: bool = True
    """Whether it is recorded who was where, for replays."""


class FilesTable(ConfigTable):
    """Files of the project that are open."""

    autosave: Literal["after_delay", "off"] = "after_delay"
    """Whether they are saved when nobody has typed for a second, or only when somebody asks."""
    checks: dict[str, list[str]] = Field(default_factory=dict)
    """By the ending of a file's name, commands that run when it has been saved; its path is put
    behind each: `{ py = ["ruff check --output-format json"] }`."""
    language_servers: dict[str, str] = Field(default_factory=dict)
    """By the ending, the command that runs a language server on its standard input and output."""


class Discovery(ConfigTable):
    """Places where models are looked for that no file names."""

    environment: bool = True
    """Keys of providers in the environment."""
    local_ports: list[Annotated[int, Field(ge=1, le=65_535)]] = Field(
        default_factory=list, max_length=20
    )
    """Ports of the loopback interface on which servers of models are looked for."""


NESTED: Final[Mapping[str, type[ConfigTable]]] = {"price": PriceTable, "window": WindowTable}
"""Tables inside that of a model."""

TABLES: Final[Mapping[str, type[ConfigTable]]] = {
    "models": ModelTable,
    "agents": AgentTable,
    "mcp": McpTable,
    "context": ContextTable,
    "permissions": PermissionsTable,
    "discovery": Discovery,
    "files": FilesTable,
}
"""Tables that a file may hold; of the first three kinds, one for each name."""


NO_MODEL: Final = (
    "No model is set up: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY before the kernel"
    " starts, start a local server such as Ollama, or name a model in config.toml."
)
"""One line for people where a kernel has no model."""


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """Something in a configuration that is wrong, and is left out."""

    file: str
    """Path; the name of an environment variable, or an address, where it is no file."""
    message: str
    """One sentence."""
    line: int | None = None
    """Line of the file, counted from 1, where there is one."""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.message}"


LOCAL_PORTS: Final = (11434, 1234, 8080, 8000)
"""Ports of Ollama, LM Studio, llama.cpp and vLLM."""


@dataclass(frozen=True, slots=True)
class KernelConfig:
    """Everything that is configured of one kernel; as given here, of one without any file."""

    models: tuple[ModelConfig, ...] = ()
    """Of the files, then those of keys in the environment."""
    agents: tuple[AgentConfig, ...] = ()
    """Of the files, then known ones that are on PATH; none has the name of a model."""
    context: ContextTable = field(default_factory=ContextTable)
    permissions: PermissionPolicy = field(default_factory=PermissionPolicy)
    """Rules for every model and agent."""
    discovery: Discovery = field(default_factory=Discovery)
    files: FilesTable = field(default_factory=FilesTable)
    mcp: tuple[McpServerConfig, ...] = ()
    """MCP servers of the files, then those of the project's `.mcp.json` that are trusted."""
    problems: tuple[ConfigProblem, ...] = ()


_Table = TypeVar("_Table", bound=ConfigTable)

_TRUSTED_FIELDS: Final = ("base_url", "key_env", "key_file", "permissions")
"""Fields of a model that a project's file may have only where its owner trusts it."""

_TRUSTED_KINDS: Final = (ModelKind.LOCAL, ModelKind.SCRIPTED)
"""Kinds of models that open files of the project."""

_MAX_PROBLEMS: Final = 100
"""Problems that are reported one by one."""

_KEYLESS_KINDS: Final = (ModelKind.LOCAL, ModelKind.SCRIPTED, ModelKind.OPENAI_CHAT)


@dataclass(slots=True)
class _ConfigParts:
    """Parts of a configuration as files are read: the user's, then the project's."""

    models: dict[str, ModelConfig] = field(default_factory=dict)
    agents: dict[str, AgentConfig] = field(default_factory=dict)
    context: ContextTable = field(default_factory=ContextTable)
    default_at: tuple[str, int | None, str | None] = ("", None, None)
    """File and line of the default model, and how the owner comes to trust the file."""
    permissions: PermissionPolicy = field(default_factory=PermissionPolicy)
    discovery: Discovery = field(default_factory=lambda: Discovery(local_ports=[*LOCAL_PORTS]))
    files: FilesTable = field(default_factory=FilesTable)
    mcp: dict[str, McpServerConfig] = field(default_factory=dict)
    problems: list[ConfigProblem] = field(default_factory=list)
    variables: set[str] = field(default_factory=set)
    """Variables that hold keys."""


def load_config(
    user_folder: Path,
    project: Path,
    variables: Mapping[str, str],
    is_trusted: Callable[[Path, bytes], bool],
) -> tuple[KernelConfig, frozenset[str]]:
    """Read the configuration of a kernel; never fails.

    Args:
        user_folder: folder of the user's own configuration.
        variables: the environment of the process that started the kernel.
        is_trusted: whether the owner trusts a file of the project with this content.

    Returns:
        the configuration, and the variables that hold keys, of this environment or any.
    """
    found = _ConfigParts(variables={name for names in KEY_VARIABLES.values() for name in names})
    users = user_folder / CONFIG_FILE
    projects = project / DATA_FOLDER / CONFIG_FILE
    data = _read(users, found, is_own=True)
    if data is not None:
        _FileReader(users, None, variables, found).read(data)
    if projects.parent.is_symlink():  # which is not trusted with what it leads to
        found.problems.append(ConfigProblem(str(projects), "not read: its folder is a link."))
    elif projects != users:
        data = _read(projects, found, is_own=False)
        if data is not None:
            trust = None if is_trusted(projects, data) else _advice(projects.parent)
            _FileReader(projects, trust, variables, found).read(data)
    data = _read(project / MCP_FILE, found, is_own=False)
    if data is not None:
        _read_project_servers(project / MCP_FILE, data, variables, is_trusted, found)
    for name, kind, model in _DEFAULT_MODELS if found.discovery.environment else ():
        try:
            key = first_key(KEY_VARIABLES[kind], variables)
        except ValueError as error:
            found.problems.append(ConfigProblem("environment", str(error)))
            continue
        if key is not None and name not in {*found.models, *found.agents}:
            found.models[name] = ModelConfig(name, kind, model, key=key)
    for agent in find_agents(project, variables) if found.discovery.environment else ():
        found.agents.setdefault(agent.name, agent)
    return _configuration(found), frozenset(found.variables)


_DEFAULT_MODELS: Final = (
    ("claude", ModelKind.ANTHROPIC, "claude-sonnet-5-5"),
    ("gpt", ModelKind.OPENAI, "gpt-6.1-sol"),
    ("gemini", ModelKind.GOOGLE, "gemini-flash-latest"),
)


def _configuration(found: _ConfigParts) -> KernelConfig:
    default = found.context.default_model
    place, line, advice = found.default_at
    if default in found.agents and default not in found.models and advice is not None:
        message = f"[context] default_model: to let an agent answer takes your trust: {advice}."
        found.problems.append(ConfigProblem(place, message, line))
        found.context = found.context.model_copy(update={"default_model": None})
    elif default is not None and default not in {*found.models, *found.agents}:
        # A local server may still turn out to have it.
        if not found.discovery.local_ports and is_name(default):
            known = did_you_mean(default, found.models)
            message = f"[context] default_model: there is no model {quote(default)}.{known}"
            found.problems.append(ConfigProblem(place, message, line))
    rest = found.problems[_MAX_PROBLEMS:]
    if rest:
        more = f"there are {len(rest)} more problems."
        found.problems[_MAX_PROBLEMS:] = [ConfigProblem(rest[0].file, more, rest[0].line)]
    return KernelConfig(
        models=tuple(found.models.values()),
        agents=tuple(one for name, one in found.agents.items() if name not in found.models),
        permissions=found.permissions,
        discovery=found.discovery,
        files=found.files,
        mcp=tuple(found.mcp.values()),
        problems=tuple(found.problems),
        context=found.context,
    )


def _advice(folder: Path) -> str:
    shown = f"`antiphon trust {shlex.quote(str(folder))}` shows"
    return f"{shown} what the project names and asks whether to trust it"


def _read_project_servers(
    path: Path,
    data: bytes,
    variables: Mapping[str, str],
    is_trusted: Callable[[Path, bytes], bool],
    found: _ConfigParts,
) -> None:
    """Take the servers of a project's `.mcp.json` that its owner trusts."""
    advice = _advice(path.parent / DATA_FOLDER)
    try:
        for server in project_servers(path, data):
            where = f"the server {quote(server.name)}"
            try:
                if server.name in found.mcp:
                    continue
                if not is_trusted(server.path, server.content):
                    raise ValueError(f"it takes your trust: {advice}")
                found.mcp[server.name] = _server(where, server.name, server.fields(), variables)
            except _EntryRefused as error:
                found.problems.append(ConfigProblem(str(path), error.message))
            except ValueError as error:
                message = f"{where} is left out: {error}."
                found.problems.append(ConfigProblem(str(path), message))
    except ValueError as error:
        found.problems.append(ConfigProblem(str(path), f"not read: {error}."))


def _read(path: Path, found: _ConfigParts, *, is_own: bool) -> bytes | None:
    """Return the bytes of a file; None if there is none, or none that may be read.

    Args:
        is_own: it is the user's, and so must nobody else be able to write it; a project's must be
            no link.
    """
    try:
        return _read_checked(path, is_own=is_own)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        why = "it is a link" if path.is_symlink() else error.strerror or str(error)
    except _EntryRefused as error:
        why = error.message
    found.problems.append(ConfigProblem(str(path), f"not read: {why}."))
    return None


def read_untrusted(path: Path) -> bytes | None:
    """Return the bytes of a project's configuration file; None if there is none that is read."""
    try:
        return _read_checked(path, is_own=False)
    except (OSError, _EntryRefused):
        return None


def _read_checked(path: Path, *, is_own: bool) -> bytes:
    if not path.is_absolute():
        raise _EntryRefused(
            "the path is not absolute: set XDG_CONFIG_HOME (or HOME) to one that is"
        )
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if is_own else os.O_NOFOLLOW)
    handle = os.open(path, flags)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise _EntryRefused("it is no ordinary file")
        if is_own and status.st_uid not in (os.geteuid(), 0):
            raise _EntryRefused(
                f"it belongs to user {status.st_uid}, not to you (user {os.geteuid()})"
            )
        if is_own and status.st_mode & 0o022:
            raise _EntryRefused(
                f"others may write in it: see that nobody has, then `chmod go-w {path}`"
            )
        return file.read(MAX_BYTES + 1)


class _FileReader:
    """Reads one file into what has been found already."""

    def __init__(
        self, path: Path, advice: str | None, variables: Mapping[str, str], found: _ConfigParts
    ) -> None:
        """`advice` says how the owner comes to stand behind the file; None if they do."""
        self._path = path
        self._advice = advice
        self._variables = variables
        self._found = found
        self._toml = TomlFile({}, {})

    def read(self, data: bytes) -> None:
        """Take every table that is right."""
        try:
            self._toml = parse_toml(data)
        except ConfigSyntaxError as error:
            self._report(f"{error.message}; nothing of this file counts.", error.line)
            return
        # Agents come last: a model of the same file keeps a name that both have.
        for name, table in sorted(self._toml.tables.items(), key=lambda one: one[0] == "agents"):
            if name not in TABLES:
                self._report(
                    f"there is no table {quote(name)}.{did_you_mean(name, TABLES)} Tables are:"
                    f" {', '.join(TABLES)}.",
                    self._toml.line_of(name),
                )
            elif not isinstance(table, dict):
                self._report(f"expected a table [{name}].", self._toml.line_of(name))
            elif self._advice is not None and name in ("permissions", "discovery", "files"):
                self._report_untrusted(f"[{name}]", name)
            elif name in ("models", "agents", "mcp"):
                self._read_entries(name, table)
            else:
                try:
                    self._take(name, _checked(f"[{name}]", TABLES[name], table))
                except _EntryRefused as error:
                    self._report(error.message, self._toml.line_of(name, *error.path))

    def _read_entries(self, kind: str, tables: dict[str, Any]) -> None:
        known = {*self._found.models, *self._found.agents}
        for name, fields in tables.items():
            where = f"[{kind}.{truncate(name)}]"
            try:
                if self._advice is not None and kind != "models":
                    raise _EntryRefused(f"{where} takes your trust: {self._advice}.")
                if kind != "mcp" and (not is_name(name) or name == SYSTEM_NAME):
                    raise _EntryRefused(
                        f"{where}: nobody can mention this name: take at most {NAME_LENGTH} of a-z,"
                        " 0-9, - and _, beginning with a letter or digit."
                    )
                if not isinstance(fields, dict):
                    raise _EntryRefused(f"{where}: expected a table.")
                if kind == "models":
                    self._found.models[name] = self._model(where, name, fields, known)
                elif kind == "agents":
                    self._found.agents[name] = self._agent(where, name, fields)
                else:
                    self._found.mcp[name] = self._server(where, name, fields)
            except _EntryRefused as error:
                self._report(error.message, self._toml.line_of(kind, name, *error.path))

    def _model(
        self, where: str, name: str, fields: Mapping[str, Any], known: set[str]
    ) -> ModelConfig:
        variable = fields.get("key_env")
        if self._advice is None and isinstance(variable, str) and VARIABLE.fullmatch(variable):
            self._found.variables.add(variable)
        table = _checked(where, ModelTable, fields)
        if self._advice is not None:
            self._check_harmless(where, table, known, name)
        return ModelConfig(
            name=name,
            kind=table.kind,
            model=self._model_path(table),
            base_url=table.base_url,
            key=self._key(where, table),
            window=_window(table),
            max_tokens=table.max_tokens,
            thinking=table.thinking,
            system=table.system,
            tools=None if table.tools is None else tuple(table.tools),
            price=None if table.price is None else ModelPrice(**table.price.model_dump()),
            permissions=None if table.permissions is None else _rules(table.permissions),
        )

    def _agent(self, where: str, name: str, fields: Mapping[str, Any]) -> AgentConfig:
        if name in self._found.models:
            raise _EntryRefused(f"{where}: a model has this name, too: name the agent anew.")
        table = _checked(where, AgentTable, fields)
        cwd = None if table.cwd is None else str(self._file(table.cwd))
        rules = None if table.permissions is None else _rules(table.permissions)
        return AgentConfig(name, tuple(table.command), table.env, cwd, rules)

    def _server(self, where: str, name: str, fields: Mapping[str, Any]) -> McpServerConfig:
        made = _server(where, name, fields, self._variables)
        for text in (f"${{{fields.get('token_env')}}}", *fields.get("headers", {}).values()):
            self._found.variables.update(one for one, _ in VARIABLE_IN_TEXT.findall(text))
        return made

    def _check_harmless(self, where: str, table: ModelTable, known: set[str], name: str) -> None:
        """Check a model of a project whose file nobody trusts; raises _EntryRefused."""
        given = table.model_fields_set
        named = next((one for one in _TRUSTED_FIELDS if one in given), None)
        if named is not None:
            raise _EntryRefused(f"{where}: {named} takes your trust: {self._advice}.", (named,))
        if table.kind in _TRUSTED_KINDS:
            raise _EntryRefused(
                f"{where}: a {table.kind} model takes your trust: {self._advice}.", ("kind",)
            )
        if name in known:
            raise _EntryRefused(
                f"{where}: to stand in place of your own model of this name takes your trust:"
                f" {self._advice}."
            )

    def _model_path(self, table: ModelTable) -> str:
        if table.kind not in _TRUSTED_KINDS:
            return table.model
        path = self._file(table.model)
        if table.kind is ModelKind.SCRIPTED:
            try:
                load_recordings(path)
            except AntiphonError as error:
                raise _EntryRefused(error.message, ("model",)) from error
        return str(path)

    def _file(self, name: str) -> Path:
        """Return the path of a file that is named here: relative to this one, or to `~`."""
        path = Path(name)
        if name.startswith("~/"):
            try:
                path = Path.home() / name[2:]
            except RuntimeError as error:
                raise _EntryRefused("`~` cannot be resolved: HOME is not set.") from error
        return self._path.parent / path

    def _key(self, where: str, table: ModelTable) -> ApiKey | None:
        """Return the key of a model; None if it takes none. Raises _EntryRefused."""
        if table.key_env is not None and table.key_file is not None:
            raise _EntryRefused(f"{where}: name key_env or key_file, not both.", ("key_file",))
        try:
            if table.key_file is not None:
                return read_key_file(self._file(table.key_file))
            if table.key_env is not None:
                return key_of(table.key_env, self._variables)
            names = KEY_VARIABLES.get(table.kind, ())
            # A key goes to its own provider only, unless the file says otherwise.
            key = first_key(names, self._variables) if table.base_url is None else None
        except ValueError as error:
            field_name = "key_file" if table.key_file is not None else "key_env"
            raise _EntryRefused(f"{where}: {error}.", (field_name,)) from error
        if key is None and table.base_url is None and table.kind not in _KEYLESS_KINDS:
            raise _EntryRefused(
                f"{where}: {table.kind} takes a key: set ${names[0]} before the kernel starts, or"
                " name key_env or key_file."
            )
        return key

    def _take(self, name: str, table: ConfigTable) -> None:
        """Take what a table says; what it does not say is as in the files before."""
        found = self._found
        if isinstance(table, PermissionsTable):
            found.permissions = _rules(table).over(found.permissions)
            return
        given = {one: getattr(table, one) for one in table.model_fields_set}
        if name == "context" and self._advice is not None:
            for one in given.keys() - {"default_model"}:  # which costs nothing by itself
                del given[one]
                self._report_untrusted(f"[context] {one}", "context", one)
        if "default_model" in given:
            line = self._toml.line_of("context", "default_model")
            found.default_at = str(self._path), line, self._advice
        setattr(found, name, getattr(found, name).model_copy(update=given))

    def _report_untrusted(self, what: str, *path: str) -> None:
        self._report(f"{what} takes your trust: {self._advice}.", self._toml.line_of(*path))

    def _report(self, message: str, line: int | None) -> None:
        self._found.problems.append(ConfigProblem(str(self._path), message, line))


class _EntryRefused(Exception):
    """A table is not taken; `path` leads from it to what is wrong."""

    def __init__(self, message: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.path = path


def _checked(where: str, kind: type[_Table], fields: Mapping[str, Any]) -> _Table:
    """Return the table that fields make; raises _EntryRefused.

    No value is quoted: it may be a key that somebody has put into the wrong place.
    """
    try:
        return kind.model_validate(fields)
    except ValidationError as invalid:
        wrong = param_error(where, kind, fields, invalid).details["errors"]
    # A name that is mistyped is also one that is missing: the mistake says more.
    first = next((one for one in wrong if one["expected"] == UNKNOWN_NAME), wrong[0])
    name: str = first["field"]
    inside, _, last = name.rpartition(".")
    if first["expected"] == UNKNOWN_NAME:
        known = NESTED.get(inside, kind).model_fields
        message = (
            f"{where} does not know {name}.{did_you_mean(last, known)} It takes:"
            f" {', '.join(known)}."
        )
    else:
        expected = first["expected"].removeprefix("value error, ")
        # A number or a word is said as it was found; of what may hold text only its kind.
        found = {'"': "other text", "[": "a list", "{": "a table"}.get(
            first["found"][:1], first["found"]
        )
        message = f"{where} {name}: expected {expected}, found {found}."
    if others := len(wrong) - 1:
        message += " There is one mistake more." if others == 1 else f" There are {others} more."
    raise _EntryRefused(message, tuple(name.split(".")))


def _server(
    where: str, name: str, fields: Mapping[str, Any], variables: Mapping[str, str]
) -> McpServerConfig:
    """Return the MCP server of a table; raises _EntryRefused."""
    table = _checked(where, McpTable, fields)
    token = {"Authorization": f"Bearer ${{{table.token_env}}}"} if table.token_env else {}
    said = (name, tuple(table.command), table.env, table.url, {**token, **table.headers})
    try:
        return McpServerConfig(*said, table.timeout).expanded(variables)
    except ValueError as error:
        raise _EntryRefused(f"{where}: {error}.") from error


def _rules(table: PermissionsTable) -> PermissionPolicy:
    return PermissionPolicy(
        {tool: ToolPermit(permit) for tool, permit in table.__pydantic_extra__.items()},
        tuple(map(CommandPattern.parse, table.shell_allow)),
        tuple(table.files_allow),
        None if table.files_deny is None else tuple(table.files_deny),
    )


def _window(table: ModelTable) -> ModelWindow | None:
    if table.window is None:
        return None
    if isinstance(table.window, int):
        return ModelWindow(input=table.window, output=min(table.window, ModelWindow().output))
    return ModelWindow(**table.window.model_dump(exclude_none=True))
