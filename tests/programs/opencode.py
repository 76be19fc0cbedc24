"""opencode with a model that a test scripts: its own home, no network, nothing of the developer's.

It takes four or five seconds of processor time to start: a test starts it once and asks it often.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tests.programs import program
from tests.programs.model_server import ModelServer


@dataclass(frozen=True, slots=True)
class Opencode:
    """An installed opencode, and the environment that it is to be started in."""

    path: Path
    env: Mapping[str, str]

    @classmethod
    def at(
        cls,
        home: Path,
        project: Path,
        model: ModelServer,
        *,
        mcp: Mapping[str, Sequence[str]] | None = None,
        permission: Mapping[str, Any] | None = None,
    ) -> Self:
        """Write its configuration below `home`; skip the test if opencode is not installed.

        Args:
            project: the folder to start it in.
            mcp: commands of MCP servers by name.
            permission: what it asks about before it does it, such as `{"edit": "ask"}`; nothing
                if None.
        """
        path = program("opencode")
        folders = {name: home / name for name in ("config", "data", "cache", "state", "runtime")}
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        scripted = {
            "name": "Scripted",
            "tool_call": True,
            "limit": {"context": 100_000, "output": 10_000},
        }
        config = {
            "model": "test/scripted",
            "small_model": "test/scripted",
            "autoupdate": False,
            "share": "disabled",
            "snapshot": False,
            "lsp": False,
            "formatter": False,
            "enabled_providers": ["test"],
            "provider": {
                "test": {
                    "npm": "@ai-sdk/openai-compatible",
                    "name": "Test",
                    "options": {"baseURL": model.url, "apiKey": "none"},
                    "models": {"scripted": scripted},
                }
            },
            "permission": permission or {},
            "mcp": {
                name: {"type": "local", "command": list(command), "enabled": True}
                for name, command in (mcp or {}).items()
            },
        }
        written = folders["config"] / "opencode" / "opencode.json"
        written.parent.mkdir(exist_ok=True)
        written.write_text(json.dumps(config, indent=1), "utf-8")
        # It installs the library of its plugins from npm unless that is locked, beside a folder.
        locked = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
        written.with_name("package-lock.json").write_text(json.dumps(locked), "utf-8")
        written.with_name("node_modules").mkdir(exist_ok=True)
        # To read the models that it comes with takes half of its start.
        models = home / "models.json"
        models.write_text("{}", "utf-8")
        env = {
            "PATH": f"{path.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "PWD": str(project),  # it believes this more than its working directory
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_CLAUDE_CODE": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_EXTERNAL_SKILLS": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_SHARE": "1",
            "OPENCODE_MODELS_PATH": str(models),
            **{f"XDG_{name.upper()}_HOME": str(folders[name]) for name in folders},
            "XDG_RUNTIME_DIR": str(folders["runtime"]),
        }
        return cls(path, {**os.environ, **env})
