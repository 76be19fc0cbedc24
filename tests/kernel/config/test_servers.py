"""MCP servers of configuration files, and of a project's `.mcp.json`, each of which takes trust."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon_kernel.client.trust import is_trusted_file, trust_file
from antiphon_kernel.config import KernelConfig, load_config, project_servers
from antiphon_kernel.mcp_servers import McpServerConfig
from tests.kernel.config.conftest import ConfigFiles, problems

CONFIGURED = """
[mcp.files]
command = ["mcp-files", "."]
env = { ROOT = "${HERE}/x", LEVEL = "${LEVEL:-info}" }
timeout = 5

[mcp.tickets]
url = "https://tickets.example.org/mcp"
token_env = "TICKETS_TOKEN"
headers = { X-Team = "${TEAM}" }
"""
VARIABLES = {"HERE": "/here", "TICKETS_TOKEN": "hunter2", "TEAM": "red"}


def test_servers_are_read_and_show_their_keys_to_nobody(files: ConfigFiles) -> None:
    config = files.read(CONFIGURED, variables=VARIABLES)
    assert config.problems == ()
    assert config.mcp == (
        McpServerConfig(
            "files", ("mcp-files", "."), {"ROOT": "/here/x", "LEVEL": "info"}, seconds=5
        ),
        McpServerConfig(
            "tickets",
            url="https://tickets.example.org/mcp",
            headers={"Authorization": "Bearer hunter2", "X-Team": "red"},
        ),
    )
    assert "hunter2" not in repr(config)
    assert {"TICKETS_TOKEN", "TEAM"} <= files.load(VARIABLES)[1], "commands do not get them"


def test_servers_of_a_project_count_only_where_its_file_is_trusted(files: ConfigFiles) -> None:
    config = files.read(project=CONFIGURED, variables=VARIABLES)
    assert config.mcp == ()
    for name, (line, message) in zip(("files", "tickets"), problems(config), strict=True):
        assert message.startswith(f"[mcp.{name}] takes your trust: `antiphon trust "), line
    assert len(files.read(variables=VARIABLES, trusted=True).mcp) == 2


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("[mcp.bad]", "[mcp.bad]: expected either a command or a url."),
        ("[mcp.bad]\ncommand = ['x']\nurl = 'http://x'", "expected either a command or a url."),
        ("[mcp.bad]\ncommand = 'x'", "[mcp.bad] command: expected a list"),
        ("[mcp.bad__x]\ncommand = ['x']", "its name takes at most 40 letters and digits"),
        ("[mcp.bad]\nurl = 'http://x'\ntoken_env = 'hunter 2'", "the name of an environment"),
        ("[mcp.bad]\nurl = 'http://x'\ntoken_env = 'MISSING'", "$MISSING is not set"),
        ("[mcp.bad]\ncommand = ['x']\ntimeout = 0", "[mcp.bad] timeout"),
        ("[mcp.bad]\ncomand = ['x']", "Did you mean command?"),
        ("[mcp]\nbad = 1", "[mcp.bad]: expected a table."),
    ],
)
def test_wrong_server_is_reported(files: ConfigFiles, table: str, said: str) -> None:
    config = files.read(table)
    ((_, message),) = problems(config)
    assert said in message and "hunter2" not in message
    assert config.mcp == ()


# The project's file


class Project:
    """A project with a `.mcp.json`, and the trust of this user."""

    def __init__(self, files: ConfigFiles) -> None:
        self.files = files
        self.path = files.project.parent.parent / ".mcp.json"

    def write(self, **servers: Any) -> None:
        self.path.write_text(json.dumps({"mcpServers": servers, "other": 1}))

    def load(self) -> KernelConfig:
        user, project = self.files.user.parent, self.path.parent
        return load_config(user, project, {"KEY": "k"}, is_trusted_file)[0]

    def trust(self, name: str) -> None:
        for one in project_servers(self.path, self.path.read_bytes()):
            if one.name == name:
                trust_file(one.path, one.content)


@pytest.fixture
def project(files: ConfigFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Project(files)


RUN = {"command": "npx", "args": ["server"], "env": {"KEY": "${KEY}"}, "alwaysAllow": ["x"]}


def test_server_of_a_project_is_trusted_as_it_is(project: Project) -> None:
    project.write(one=RUN, two={"type": "http", "url": "https://x.example/mcp"})
    config = project.load()
    assert config.mcp == ()
    assert [
        message.partition(": it takes your trust: `antiphon trust ")[0]
        for _, message in problems(config)
    ] == ["the server 'one' is left out", "the server 'two' is left out"]
    project.trust("one")
    config = project.load()
    assert config.mcp == (McpServerConfig("one", ("npx", "server"), {"KEY": "k"}),)
    assert len(config.problems) == 1
    project.trust("two")
    assert [one.url for one in project.load().mcp] == [None, "https://x.example/mcp"]


@pytest.mark.parametrize(
    "changed",
    [
        {**RUN, "args": ["other"]},
        {**RUN, "command": "sh"},
        {**RUN, "env": {"KEY": "${KEY}", "NODE_OPTIONS": "--require ./evil.js"}},
    ],
)
def test_changed_server_takes_trust_again(project: Project, changed: dict[str, Any]) -> None:
    project.write(one=RUN)
    project.trust("one")
    project.write(one=changed)
    assert project.load().mcp == ()
    project.write(another=RUN)
    assert project.load().mcp == (), "what is trusted has a name"
    project.write(one=dict(reversed(RUN.items())), two={})
    assert [one.name for one in project.load().mcp] == ["one"], "the order says nothing"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not read: no JSON"),
        ("[]", "not read: expected an object with `mcpServers`"),
        ('{"mcpServers": 1}', "not read: expected an object with `mcpServers`"),
        ('{"mcpServers": {"x": 5}}', "the server 'x' is left out: expected an object"),
        ('{"mcpServers": {"x": {"command": "a", "args": "b"}}}', "with a list as `args`"),
        ('{"mcpServers": {"x": {"command": 5}}}', "the server 'x' command"),
        ('{"mcpServers": {"x": {"type": "sse", "url": "http://x"}}}', "type sse are not spoken to"),
        ('{"mcpServers": {"x y": {"command": "a"}}}', "its name takes at most"),
        ('{"mcpServers": {"x": {"command": "${NOT_SET}"}}}', "$NOT_SET is not set"),
    ],
)
def test_wrong_file_of_a_project_is_reported(files: ConfigFiles, content: str, said: str) -> None:
    (files.project.parent.parent / ".mcp.json").write_text(content)
    config = files.read(trusted=True)
    ((_, message),) = problems(config)
    assert said in message
    assert config.mcp == ()


def test_configured_server_comes_before_the_projects(files: ConfigFiles) -> None:
    theirs = '{"mcpServers": {"a": {"command": "b"}}}'
    (files.project.parent.parent / ".mcp.json").write_text(theirs)
    config = files.read("[mcp.a]\ncommand = ['mine']", trusted=True)
    assert [one.command for one in config.mcp] == [("mine",)]
