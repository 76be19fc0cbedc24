"""The rules of the structure: layers, private names, weight of imports, names, docstrings."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = (ROOT / "app" / "antiphon", ROOT / "kernel" / "antiphon_kernel")
PRIVATE = r"(?m)import .*\b_|^ +_\w+( as \w+)?,$"
RELATIVE = r"(What|Who|Whose|Whom|Whoever|Where|Which)\b"
SCOPES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def sources(*folders: Path) -> list[Path]:
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def parsed(pattern: str, *folders: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Yield the modules whose text has the pattern: to parse all of them takes seconds."""
    for path in sources(*folders):
        text = path.read_text("utf-8")
        if re.search(pattern, text):
            yield path, ast.parse(text)


def is_private(name: str) -> bool:
    is_special = name.startswith("__") and name.endswith("__")
    return name.startswith("_") and not is_special


SERVICES = {"pydantic_ai", "anthropic", "openai", "google", "httpx", "httpx2"}
"""Libraries that models of services are asked through."""

PROTOCOLS = {"mcp", "mcp_types", "acp"}
"""Libraries that agents and tools of others are spoken to with."""


def private_names_imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the private names that `tree` takes out of our other modules, with their lines.

    Attributes of modules are what ruff looks at.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("antiphon"):
            for alias in node.names:
                if is_private(alias.name):
                    yield node.lineno, f"{node.module}.{alias.name}"


def test_imports_point_down_and_make_no_cycles() -> None:
    """The contracts are in pyproject.toml, [tool.importlinter]."""
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_modules_use_no_private_names_of_others() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path, tree in parsed(PRIVATE, *PACKAGES, ROOT / "tests")
        for line, name in private_names_imported(tree)
    ]
    assert found == []


def test_shared_types_are_reached_by_modules_of_the_document_package_only() -> None:
    """So that nothing but texts can be written into contents without a tool."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in parsed(r"\.container\b", *PACKAGES)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "container"
        and path.parent != PACKAGES[1] / "document"
    ]
    assert found == []


IMPORTS = (
    (
        "antiphon.cli.commands",
        {"textual", "rich", "pycrdt", "pydantic", "asyncio", "websockets", "uvicorn"}
        | SERVICES
        | PROTOCOLS,
    ),
    ("antiphon_kernel.client.replica", {"textual", "rich", "uvicorn", "aiosqlite"}),
    ("antiphon_kernel.providers.opening", SERVICES),
    (
        "antiphon_kernel.daemon.run",
        {"textual", "rich", "psycopg", "charset_normalizer"} | SERVICES | PROTOCOLS,
    ),
    ("antiphon.render.cell_renderer", {"markdown_it", "pygments"}),
    ("antiphon.render.markdown", {"markdown_it", "pygments"}),
    ("antiphon.themes", {"markdown_it", "pygments"}),
    ("antiphon.app", SERVICES | PROTOCOLS),
)
"""Modules, the lightest first, and libraries that are not imported with them."""


def test_module_is_light_to_import() -> None:
    """One process imports them one after the other: what is heavy is wanted by later ones only."""
    code = "".join(
        f"import {module}; print(*{{name.partition('.')[0] for name in sys.modules}});"
        for module, _ in IMPORTS
    )
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}"], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.splitlines()
    found = {
        module: unwanted.intersection(names.split())
        for (module, unwanted), names in zip(IMPORTS, loaded, strict=True)
    }
    assert not any(found.values()), found


def classes() -> Iterator[tuple[str, Path]]:
    """Yield the classes of modules, and those in them, such as a widget's messages."""
    for path in sources(*PACKAGES):
        for name in re.findall(r"(?m)^class _?(\w+)", path.read_text("utf-8")):
            yield name, path
    for path, tree in parsed(r"(?m)^ +class ", *PACKAGES):
        waiting = [one for one in tree.body if isinstance(one, ast.ClassDef)]
        for node in waiting:
            inner = [one for one in node.body if isinstance(one, ast.ClassDef)]
            waiting += inner
            yield from ((one.name.lstrip("_"), path) for one in inner)


def test_class_names_are_unique() -> None:
    found: dict[str, list[str]] = {}
    for name, path in classes():
        found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in found.items() if len(paths) > 1} == {}


def test_class_of_the_app_has_at_most_45_methods_and_500_lines() -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [path.read_text("utf-8") for path in sources(ROOT / "app")]
    too_large = [
        one.name
        for text in texts
        if text.count("\n") >= 500 or len(re.findall(r"(?m)^ +(?:async )?def ", text)) > 45
        for one in ast.walk(ast.parse(text))
        if isinstance(one, ast.ClassDef)
        and (
            sum(isinstance(part, functions) for part in one.body) > 45
            or (one.end_lineno or 0) - one.lineno >= 500
        )
    ]
    assert too_large == []


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the docstrings of a module, of its classes, functions and attributes, with lines."""
    for node in ast.walk(tree):
        for statement in getattr(node, "body", ()) if isinstance(node, SCOPES) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.lineno, value.value


def relative_docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the first lines of docstrings that begin with a relative clause."""
    for line, doc in docstrings(tree):
        if re.match(RELATIVE, doc.strip()):
            yield line, doc.strip().splitlines()[0]


def test_docstrings_begin_without_relative_clause() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} {doc}"
        for path, tree in parsed(rf"(?m)^\s*r?[\"']+\s*{RELATIVE}", *PACKAGES, ROOT / "tests")
        for line, doc in relative_docstrings(tree)
    ]
    assert found == []


def test_relative_clause_is_found_in_module_class_function_and_attribute() -> None:
    source = '''
"""What a module is."""
A = 1
"""Which constant."""
class B:
    """Where things are."""
    c: int
    """Who did it."""
    def __init__(self):
        """Whose it is."""
        self.d = 1
        """What it has."""
        self.e = "What is no docstring"
        """The rest, and what else there is."""
'''
    assert [line for line, _ in relative_docstrings(ast.parse(source))] == [2, 4, 6, 8, 10, 12]


def test_package_says_what_it_is_and_holds_no_code() -> None:
    for path in sources(*PACKAGES):
        if path.name == "__init__.py":
            first, *rest = ast.parse(path.read_text("utf-8")).body
            assert ast.get_docstring(ast.Module([first], [])), f"{path.relative_to(ROOT)}"
            assert all(isinstance(one, ast.ImportFrom | ast.Assign) for one in rest)
