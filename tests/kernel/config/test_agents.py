"""Agents that are configured, or found on PATH."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from antiphon_kernel.config import AgentConfig
from tests.kernel.config.conftest import KEYS, ConfigFiles, names, problems
from tests.policies import policy_of

CONFIGURED: Final = """
[agents.mine]
command = ["my-agent", "--acp"]
env = { TOKEN = "hunter2" }
cwd = "agents"
[agents.mine.permissions]
file_edit = "allow"
"""


def program(folder: Path, name: str) -> Path:
    """Make a program that can be found."""
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / name
    place.write_text("#!/bin/sh\n")
    place.chmod(0o755)
    return place


def test_reads_an_agent_and_shows_its_variables_to_nobody(files: ConfigFiles) -> None:
    config = files.read(CONFIGURED)
    cwd = str(files.user.parent / "agents")
    rules = policy_of({"file_edit": "allow"})
    mine = AgentConfig("mine", ("my-agent", "--acp"), {"TOKEN": "hunter2"}, cwd, rules)
    assert (config.agents, problems(config)) == ((mine,), [])
    assert "hunter2" not in repr(config)


def test_agent_of_a_project_counts_only_where_its_file_is_trusted(files: ConfigFiles) -> None:
    config = files.read(project=CONFIGURED)
    ((line, message),) = problems(config)
    assert (config.agents, line) == ((), 2)
    assert message.startswith("[agents.mine] takes your trust: `antiphon trust ")
    assert [one.name for one in files.read(trusted=True).agents] == ["mine"]
    shadowing = '[models.mine]\nkind = "anthropic"\nmodel = "m"'
    config = files.read(CONFIGURED, shadowing)
    ((_, message),) = problems(config)
    assert "in place of your own model" in message
    assert [one.name for one in config.agents] == ["mine"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[agents.Bad]\ncommand = ['x']", "nobody can mention this name"),
        ("[agents.system]\ncommand = ['x']", "nobody can mention this name"),
        ("[agents]\nx = 1", "expected a table"),
        ("[agents.x]", "command"),
        ("[agents.x]\ncommand = 'x'", "expected a list"),
        ("[agents.x]\ncommand = []", "[agents.x] command"),
        ("[agents.x]\ncommand = ['x']\nenv = { TOKEN = 1 }", "[agents.x] env"),
        ("[agents.x]\ncommand = ['x']\nkey = 'hunter2'", "does not know key"),
        ("[agents.same]\ncommand = ['x']", "a model has this name"),
    ],
)
def test_reports_an_agent_that_is_wrong_and_goes_on(
    files: ConfigFiles, text: str, said: str
) -> None:
    right = "[models.same]\nkind = 'anthropic'\nmodel = 'm'\n[agents.right]\ncommand = ['right']\n"
    config = files.read(f"{text}\n{right}" if "x = 1" not in text else text)
    ((_, message),) = problems(config)
    assert said in message
    assert "hunter2" not in message
    assert [one.name for one in config.agents] == (["right"] if "x = 1" not in text else [])
    assert "claude" in names(config)


def test_agent_answers_by_default_only_where_the_file_that_says_so_is_trusted(
    files: ConfigFiles,
) -> None:
    default = '[context]\ndefault_model = "mine"'
    config = files.read(CONFIGURED, default)
    assert config.context.default_model is None
    ((line, message),) = problems(config)
    assert line == 2
    assert "to let an agent answer takes your trust: `antiphon trust " in message
    trusted = files.read(trusted=True)
    assert (trusted.context.default_model, problems(trusted)) == ("mine", [])
    own = files.read(f"{CONFIGURED}\n{default}\n[discovery]\nlocal_ports = []", "")
    assert (own.context.default_model, problems(own)) == ("mine", [])


def test_finds_known_agents_on_path_but_none_that_came_with_the_project(
    files: ConfigFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = files.project.parent.parent
    there, linked = tmp_path / "bin", tmp_path / "linked"
    found = program(there, "opencode")
    program(project / "bin", "goose")
    program(project / "bin", "opencode")
    program(there, "unknown-agent")
    (there / "codex-acp").write_text("no program")
    (there / "gemini").symlink_to(program(project / "tools", "gemini"))
    linked.symlink_to(project / "bin")
    monkeypatch.chdir(project)
    path = os.pathsep.join(["bin", "", str(project / "bin"), str(linked), str(there)])
    config = files.read(variables={**KEYS, "PATH": path})
    assert config.agents == (AgentConfig("opencode", (str(found), "acp")),)
    mine = files.read("[agents.opencode]\ncommand = ['mine']", variables={"PATH": path})
    assert mine.agents == (AgentConfig("opencode", ("mine",)),)
    named = files.read("[agents.claude]\ncommand = ['mine']", variables={**KEYS, "PATH": path})
    assert "claude" not in names(named)
    shadowed = '[models.opencode]\nkind = "openai-chat"\nmodel = "m"\nbase_url = "http://x/v1"'
    assert files.read(shadowed, variables={"PATH": path}).agents == ()
    assert files.read("[discovery]\nenvironment = false", variables={"PATH": path}).agents == ()
