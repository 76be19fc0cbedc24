"""Configuration files: what they may say, and what becomes of those that are wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from antiphon_kernel.config import ContextTable, FilesTable
from antiphon_kernel.messages import ModelWindow
from antiphon_kernel.providers import ModelConfig, ModelKind, ModelPrice
from tests.kernel.config.conftest import ConfigFiles, names, problems
from tests.policies import policy_of

MODEL = '[models.{name}]\nkind = "openai-chat"\nmodel = "m"\n'
GOOD = MODEL.format(name="good")


def test_keys_in_the_environment_give_models_without_a_file(files: ConfigFiles) -> None:
    config = files.read(variables={})
    assert config.models == () and config.problems == ()
    config = files.read(variables={"OPENAI_API_KEY": "k", "GOOGLE_API_KEY": "g", "OTHER": "x"})
    assert [(one.name, one.kind, one.key and one.key.source) for one in config.models] == [
        ("gpt", ModelKind.OPENAI, "$OPENAI_API_KEY"),
        ("gemini", ModelKind.GOOGLE, "$GOOGLE_API_KEY"),
    ]


def test_every_field_of_a_model_is_read(files: ConfigFiles) -> None:
    config = files.read(
        """
        [models.big]
        kind = "openai-chat"
        model = "qwen3:32b"
        base_url = "http://127.0.0.1:11434/v1"
        key_env = "MY_KEY"
        max_tokens = 4096
        thinking = 0
        system = "Be brief."
        tools = ["block_read", "shell"]
        price = { input = 1, output = 2.5, cached = 0.1 }
        window = { input = 32768, output = 4096 }
        [models.big.permissions]
        shell = "deny"
        "*" = "ask"
        shell_allow = ["git status"]
        files_allow = ["src/**"]
        files_deny = [".env"]
        [context]
        default_model = "big"
        budget = 20000
        max_rounds = 7
        record_presence = false
        max_turn_dollars = 0.5
        [permissions]
        shell = "ask"
        [discovery]
        environment = false
        local_ports = []
        [files]
        autosave = "off"
        checks.py = ["ruff check", "mypy"]
        language_servers.py = "pylsp"
        """,
        variables={"MY_KEY": "sk-mine", "OPENAI_API_KEY": "other"},
    )
    (model,) = config.models
    assert model.key is not None and model.key.value == "sk-mine"
    assert model == ModelConfig(
        name="big",
        kind=ModelKind.OPENAI_CHAT,
        model="qwen3:32b",
        base_url="http://127.0.0.1:11434/v1",
        key=model.key,
        window=ModelWindow(32768, 4096),
        max_tokens=4096,
        thinking=0,
        system="Be brief.",
        tools=("block_read", "shell"),
        price=ModelPrice(1, 2.5, 0.1),
        permissions=policy_of(
            {"shell": "deny", "*": "ask"},
            ("git status",),
            files_allow=["src/**"],
            files_deny=[".env"],
        ),
    )
    assert config.permissions == policy_of({"shell": "ask"})
    context = ContextTable(
        default_model="big",
        budget=20000,
        max_rounds=7,
        max_turn_dollars=0.5,
        record_presence=False,
    )
    assert config.context == context
    assert config.files == FilesTable(
        autosave="off", checks={"py": ["ruff check", "mypy"]}, language_servers={"py": "pylsp"}
    )
    assert config.discovery.local_ports == [] and config.problems == ()


@pytest.mark.parametrize(
    ("table", "line", "said"),
    [
        ('[models.bad]\nkind = "opnai"\nmodel = "m"', 5, "[models.bad] kind: expected 'anthropic'"),
        ('[models.bad]\nkind = "openai"\nmodle = "m"', 6, "modle. Did you mean model?"),
        ('[models.bad]\nkind = "openai"', 4, "[models.bad] model: expected a value"),
        ("[models.bad]\n", 4, "[models.bad] kind: expected a value"),
        ("[models.bad]\n", 4, "There is one mistake more."),
        ('[models]\nbad = "openai"', 5, "[models.bad]: expected a table"),
        (MODEL.format(name="bad") + "max_tokens = true", 7, "expected a whole number, found true"),
        (MODEL.format(name="bad") + 'max_tokens = "9"', 7, "expected a whole number, found other"),
        (MODEL.format(name="bad") + "max_tokens = 0", 7, "max_tokens: expected at least 1"),
        (MODEL.format(name="bad") + "thinking = 1.5", 7, "expected a whole number, found 1.5"),
        (MODEL.format(name="bad") + "price = {input = 1, outptu = 2}", 7, "Did you mean output?"),
        (MODEL.format(name="bad") + "price = {input = nan, output = 2}", 7, "finite"),
        (MODEL.format(name="bad") + 'tools = "shell"', 7, "tools: expected a list"),
        (MODEL.format(name="bad") + 'base_url = "ftp://h"', 7, "an address such as"),
        (MODEL.format(name="bad") + 'base_url = "http://me:pw@h"', 7, "without user name"),
        (MODEL.format(name="bad") + 'key_env = "my-key"', 7, "name of an environment variable"),
        (MODEL.format(name="bad") + 'key_env = "UNSET"', 7, "$UNSET is not set"),
        (MODEL.format(name="bad") + 'key_file = "gone"', 7, "cannot be read: No such file"),
        (MODEL.format(name="bad") + 'key_env = "A"\nkey_file = "b"', 8, "not both"),
        ('[models.bad]\nkind = "google"\nmodel = "m"', 4, "google takes a key: set $GEMINI"),
        (
            MODEL.format(name="bad") + 'permissions = {shell_allow = ["git log; rm"]}',
            7,
            "a pattern is one command",
        ),
        (
            MODEL.format(name="bad") + "permissions = {files_allow = [1]}",
            7,
            "files_allow.0: expected a string",
        ),
        (MODEL.format(name='"Great Name"'), 4, "nobody can mention this name"),
        (MODEL.format(name='"ä"'), 4, "nobody can mention this name"),
        (MODEL.format(name='""'), 4, "nobody can mention this name"),
        (MODEL.format(name="system"), 4, "nobody can mention this name"),
        (MODEL.format(name="a" * 65), 4, "nobody can mention this name"),
        ("[modles]\nx = 1", 4, "there is no table 'modles'. Did you mean models?"),
        ("[context]\nmax_rounds = -1", 5, "[context] max_rounds: expected at least 1"),
        ('[context]\nmax_round = 1', 5, "Did you mean max_rounds?"),
        ('[permissions]\nshell = "maybe"', 5, "[permissions] shell: expected 'allow', 'ask' or"),
        ('[files]\nautosave = "on"', 5, "[files] autosave: expected 'after_delay' or 'off'"),
        ("[discovery]\nlocal_ports = [0]", 5, "local_ports.0: expected at least 1"),
    ],
)  # fmt: skip
def test_wrong_entry_is_reported_with_its_line_and_the_rest_counts(
    files: ConfigFiles, table: str, line: int, said: str
) -> None:
    config = files.read(GOOD + table)
    assert names(config)[:1] == ["good"]
    assert "bad" not in names(config)
    ((found_line, message),) = problems(config)
    assert said in message
    assert found_line == line
    assert str(config.problems[0]).startswith(f"{files.user}:{line}: ")


def test_value_in_the_place_of_a_table_is_reported(files: ConfigFiles) -> None:
    config = files.read("models = 3\ncontext = []\n")
    assert problems(config) == [
        (1, "expected a table [models]."),
        (2, "expected a table [context]."),
    ]


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (GOOD.encode() + b"[models.good]\n", 4, "no TOML: cannot declare"),
        (GOOD.encode() + b'model = "n"\n', 4, "no TOML: cannot overwrite"),
        (b"[models.x\n", 1, "no TOML"),
        (b'x = """', 1, "no TOML"),
        (b'a = 1\nb = "\xff"\n', 2, "expected UTF-8"),
        (b"a = " + b"[" * 30_000, None, "nested too deeply"),
        (b"x = " + b"9" * 5_000, None, "no TOML"),
        (b".".join([b"a"] * 200) + b" = 1", 1, "dots in one line"),
        (b"# " + b"x" * 70_000, None, "more than 65536 bytes"),
    ],
    ids=["table", "key", "header", "string", "latin-1", "deep", "digits", "dots", "huge"],
)
def test_file_that_is_no_toml_is_reported_and_models_of_keys_are_there(
    files: ConfigFiles, content: bytes, line: int | None, said: str
) -> None:
    config = files.read(content)
    assert names(config) == ["claude", "gpt"]
    ((found_line, message),) = problems(config)
    assert said in message and "nothing of this file counts" in message
    assert found_line == line


def test_lines_are_found_behind_text_that_looks_like_tables(files: ConfigFiles) -> None:
    config = files.read(
        '[models.good]\nkind = "openai"\nmodel = "m"\nsystem = """\n[models.bad]\nkind = 1\n"""\n'
        '["models"."bad"]\n"kind" = "openai"\nmodel = 5\n[models.dotted]\nprice.input = "x"\n'
        'price.output = 1\nkind = "openai"\nmodel = "m"\n'
    )
    assert [line for line, _ in problems(config)] == [10, 12]


def test_number_of_problems_is_bounded(files: ConfigFiles) -> None:
    config = files.read("".join(f"[models.m{number}]\nx = 1\n" for number in range(500)))
    assert len(config.problems) == 101
    assert str(config.problems[-1]) == f"{files.user}:202: there are 400 more problems."


# Trust in the project's file


@pytest.mark.parametrize(
    ("project", "line", "what"),
    [
        (MODEL.format(name="x") + 'base_url = "http://evil.example"', 4, "base_url"),
        (MODEL.format(name="x") + 'key_env = "AWS_SECRET"', 4, "key_env"),
        (MODEL.format(name="x") + 'key_file = "~/.ssh/id_rsa"', 4, "key_file"),
        (MODEL.format(name="x") + 'permissions = {shell = "allow"}', 4, "permissions"),
        ('[models.x]\nkind = "local"\nmodel = "m.gguf"', 2, "a local model"),
        ('[models.x]\nkind = "scripted"\nmodel = "m.jsonl"', 2, "a scripted model"),
        (GOOD, 1, "in place of your own model"),
        ('[permissions]\nshell = "allow"', 1, "[permissions]"),
        ("[discovery]\nlocal_ports = [1]", 1, "[discovery]"),
        ('[files]\nchecks.py = ["evil"]', 1, "[files]"),
        ('[files]\nlanguage_servers.py = "evil"', 1, "[files]"),
        ("[context]\nmax_rounds = 9999", 2, "[context] max_rounds"),
        ("[context]\nbudget = 9999", 2, "[context] budget"),
    ],
)
def test_project_file_without_trust_may_not_say_what_costs_or_reaches_out(
    files: ConfigFiles, project: str, line: int, what: str
) -> None:
    before = files.read(GOOD)
    config = files.read(project=project + "\n" + MODEL.format(name="fine"))
    assert set(names(config)) == {*names(before), "fine"}
    assert config.models[0] == before.models[0]
    assert (config.permissions, config.discovery) == (before.permissions, before.discovery)
    assert config.context == ContextTable()
    ((found_line, message),) = problems(config)
    assert what in message and "takes your trust: `antiphon trust " in message
    assert found_line == line


def test_variables_that_an_untrusted_file_names_stay_in_the_environment(files: ConfigFiles) -> None:
    files.project.write_text(MODEL.format(name="x") + 'key_env = "PATH"\n', "utf-8")
    assert "PATH" not in files.load()[1]
    assert "PATH" in files.load(trusted=True)[1]


def test_trusted_project_file_comes_before_the_users(files: ConfigFiles) -> None:
    config = files.read(
        GOOD + '[permissions]\nshell = "deny"\nfile_read = "ask"\n[files]\nautosave = "off"\n',
        GOOD.replace('"m"', '"theirs"')
        + 'base_url = "http://127.0.0.1:1/v1"\n[permissions]\nshell = "ask"\n'
        + '[files]\nlanguage_servers.py = "pylsp"\n',
        trusted=True,
    )
    assert config.files == FilesTable(autosave="off", language_servers={"py": "pylsp"})
    assert config.problems == ()
    assert config.models[0].model == "theirs"
    assert config.permissions == policy_of({"shell": "ask", "file_read": "ask"})


def test_default_model_of_any_project_counts_and_is_reported_if_it_is_not_there(
    files: ConfigFiles,
) -> None:
    assert files.read(project='[context]\ndefault_model = "gpt"').context.default_model == "gpt"
    config = files.read(
        '[discovery]\nlocal_ports = []\n[context]\ndefault_model = "claud"\n', "# nothing\n"
    )
    ((line, message),) = problems(config)
    assert line == 4 and "Did you mean claude?" in message


# Files that are not read


def test_users_file_that_others_may_write_is_not_read(files: ConfigFiles) -> None:
    files.user.write_text(GOOD, "utf-8")
    files.user.chmod(0o666)
    ((_, message),) = problems(files.read(variables={}))
    assert "others may write in it" in message and "chmod go-w" in message


def test_projects_file_that_is_a_link_or_a_pipe_is_not_read(
    files: ConfigFiles, tmp_path: Path
) -> None:
    (tmp_path / "outside.toml").write_text(GOOD, "utf-8")
    files.project.symlink_to(tmp_path / "outside.toml")
    assert problems(files.read(variables={})) == [(None, "not read: it is a link.")]
    files.project.unlink()
    os.mkfifo(files.project)
    assert problems(files.read(variables={})) == [(None, "not read: it is no ordinary file.")]


def test_projects_file_in_a_folder_that_is_a_link_is_not_read(
    files: ConfigFiles, tmp_path: Path
) -> None:
    folder = files.project.parent
    folder.rename(tmp_path / "of another project")
    folder.symlink_to(tmp_path / "of another project")
    config = files.read(project=GOOD, variables={}, trusted=True)
    assert (config.models, problems(config)) == ((), [(None, "not read: its folder is a link.")])


# Keys


def test_key_file_of_this_user_alone_is_read(files: ConfigFiles) -> None:
    key = files.user.parent / "key"
    key.write_text("sk-from-file\n", "utf-8")
    key.chmod(0o600)
    config = files.read(GOOD + 'key_file = "key"', variables={})
    assert config.problems == ()
    assert config.models[0].key is not None
    assert config.models[0].key.value == "sk-from-file"
    assert config.models[0].key.source == str(key)
    assert "sk-from-file" not in repr(config)


@pytest.mark.parametrize(
    ("mode", "content", "said"),
    [
        (0o640, b"sk-x", "chmod 600"),
        (0o604, b"sk-x", "mode 0604"),
        (0o600, b"", "is empty"),
        (0o600, b"sk one\nsk two", "one key"),
        (0o600, b"sk-\xff", "not UTF-8"),
        (0o600, b"x" * 10_001, "10000 bytes"),
    ],
)
def test_key_file_that_others_read_or_that_holds_no_key_is_refused(
    files: ConfigFiles, mode: int, content: bytes, said: str
) -> None:
    key = files.user.parent / "key"
    key.write_bytes(content)
    key.chmod(mode)
    config = files.read(MODEL.format(name="x") + 'key_file = "key"', variables={})
    ((line, message),) = problems(config)
    assert line == 4 and said in message
    assert config.models == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="a second user takes root")
def test_key_file_of_another_user_is_refused(files: ConfigFiles) -> None:
    key = files.user.parent / "key"
    key.write_text("sk-x", "utf-8")
    key.chmod(0o600)
    os.chown(key, 65534, 65534)
    ((_, message),) = problems(files.read(MODEL.format(name="x") + 'key_file = "key"'))
    assert "belongs to user 65534" in message


def test_key_goes_to_another_server_only_if_the_file_names_it(files: ConfigFiles) -> None:
    config = files.read(
        GOOD + 'base_url = "http://127.0.0.1:1/v1"\n' + MODEL.format(name="official")
    )
    assert config.models[0].key is None
    assert config.models[1].key is not None


@pytest.mark.parametrize(
    "table",
    [
        'key_env = "sk-planted-1"',
        'key_file = ["sk-planted-1"]',
        'key = "sk-planted-1"',
        'kind = "sk-planted-1"',
        'base_url = "sk-planted-1"',
        'base_url = "https://sk-planted-1@h"',
        'max_tokens = "sk-planted-1"',
        'price = {input = "sk-planted-1"}',
        'tools = {x = "sk-planted-1"}',
        'permissions = {shell = "sk-planted-1"}',
        'key_env = sk-planted-1',
    ],
)  # fmt: skip
def test_key_in_the_wrong_place_is_in_no_problem(files: ConfigFiles, table: str) -> None:
    first = "" if table.startswith("kind") else 'kind = "openai"\n'
    config = files.read(f'[models.x]\n{first}model = "m"\n{table}\n')
    assert len(config.problems) == 1
    assert "sk-planted-1" not in repr(config)


HIDES = """
import subprocess, sys
from antiphon_kernel.config import hide_variables
hide_variables(["PLANTED_KEY", "NOT_SET"])
subprocess.run(["env"], check=True)
print("initial:", open("/proc/self/environ").read().replace(chr(0), " "))
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only where /proc is")
def test_hidden_variable_is_neither_inherited_nor_shown_by_the_system() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HIDES],
        env={**os.environ, "PLANTED_KEY": "sk-planted-value", "KEPT": "kept-value"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("kept-value") == 2
    assert "sk-planted-value" not in done.stdout
