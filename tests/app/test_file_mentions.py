"""`@path` in a message: which words are paths, what they become, how they are completed."""

from __future__ import annotations

from pathlib import Path

import pytest

from antiphon.file_mentions import complete_address, mentioned_paths, read_mentioned
from antiphon_kernel.types.errors import AntiphonError


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("@aria look", []),
        ("@aria. Look, @bo: this", []),
        ("@docs/a.md", ["docs/a.md"]),
        ("see @docs/a.md, and @b.py. (@c.py, e@d.py)", ["docs/a.md", "b.py"]),
        ("see @a.md\n@a.md @./Makefile", ["a.md", "./Makefile"]),
        ('the @"my notes/a b.md"!', ["my notes/a b.md"]),
        ("mail me@example.org or foo@1.2", []),
        ("@ a.md @. @.. @...", []),
        ("@日本/Größe.md…", ["日本/Größe.md"]),
    ],
)
def test_mentioned_paths_are_words_with_a_slash_or_a_dot(text: str, paths: list[str]) -> None:
    assert mentioned_paths(text) == paths


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("docs/alpha.md", "docs/beta.md", "Makefile", "main.py", ".env", "a b.txt"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(name)
    (tmp_path / ".antiphon").mkdir()
    (tmp_path / "out").symlink_to("/")
    return tmp_path


@pytest.mark.parametrize(
    ("before", "common", "choices"),
    [
        ("@do", "docs/", ("docs/",)),
        ("see @docs/", "docs/", ("docs/alpha.md", "docs/beta.md")),
        ("see @docs/a", "docs/alpha.md", ("docs/alpha.md",)),
        ("@M", "./Makefile", ("./Makefile",)),
        ("@m", "m", ("ma", "mb")),
        ("@ma", "ma", ("ma",)),
        ("@mai", "main.py", ("main.py",)),
        ("@.e", ".env", (".env",)),
        ("@nothing", "nothing", ()),
        ("@.a", ".a", ()),
        ("@../", "../", ()),
        ("@out/", "out/", ()),
        ("@/et", "/et", ()),
        ("@", "", ("ma", "mb", "./Makefile", "docs/", "main.py", "out/")),
    ],
)
def test_complete_address_offers_names_first_and_then_files(
    project: Path, before: str, common: str, choices: tuple[str, ...]
) -> None:
    found = complete_address(before, {"ma": "person", "mb": "model"}, project)
    assert found is not None and found.common == f"@{common}"
    assert [one.text for one in found.choices] == [f"@{one}" for one in choices]


@pytest.mark.parametrize("before", ["", "@a ", "me@a", "no mention"])
def test_complete_address_away_from_one_offers_nothing(project: Path, before: str) -> None:
    assert complete_address(before, {"amy": "person"}, project) is None


def test_read_mentioned_takes_the_files_or_says_which_it_cannot(project: Path) -> None:
    files = read_mentioned(project, ["docs/alpha.md", "./Makefile"])
    assert [file["name"] for file in files] == ["alpha.md", "Makefile"]
    for path in ("no/such.md", "out/etc/passwd", "../x.md", ".antiphon/x"):
        with pytest.raises(AntiphonError) as caught:
            read_mentioned(project, ["main.py", path])
        assert caught.value.message.endswith("put a space behind the @.")
