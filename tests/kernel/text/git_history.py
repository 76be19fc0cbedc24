"""A git repository with a history that looks like work: made from a seed, in one import."""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

_WORDS = (
    "line block patch text naïve 漢字 \N{GRINNING FACE} e\u0301te\u0301 \u202eabc a\u2028b x\x0cy"
    " tab\there offset == None 0x1F -- ++ @@ \\ value"
).split(" ")

_COMMIT = re.compile(r"\n([0-9a-f]{40})(?=\n)")
_INDEX = re.compile(r"^index ([0-9a-f]+)\.\.([0-9a-f]+)", re.MULTILINE)

Files = dict[str, str]


@dataclass(frozen=True)
class FilePatch:
    """Patch of one commit to one file, as git gives it; an absent file is an empty text."""

    commit: str
    before: str
    after: str
    patch: str


class Git:
    """A repository in a folder of its own, untouched by anybody's configuration."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run("init", "--quiet", ".")

    def run(self, *arguments: str, given: str = "", allowed: tuple[int, ...] = (0,)) -> str:
        """Standard output, exactly; an exit code that is not `allowed` fails the test."""
        done = subprocess.run(
            ["git", "-c", "core.autocrlf=false", *arguments],
            input=given.encode(),
            capture_output=True,
            cwd=self.folder,
            check=False,
        )
        assert done.returncode in allowed, done.stderr.decode()
        return done.stdout.decode()

    def blobs(self, names: list[str], *options: str) -> dict[str, str]:
        """Return the texts of blobs, by name."""
        done = subprocess.run(
            ["git", *options, "cat-file", "--batch"],
            input="\n".join(names).encode(),
            capture_output=True,
            cwd=self.folder,
            check=True,
        )
        output, texts = BytesIO(done.stdout), dict[str, str]()
        for name in names:
            size = int(output.readline().split()[2])
            texts[name] = output.read(size + 1)[:-1].decode()
        return texts

    def apply(self, text: str, patch: str) -> str | None:
        """Return a file `text` as `git apply` leaves it; None if it refuses.

        A patch without any context is given the leave that git wants for it.
        """
        file = self.folder / "target"
        file.write_bytes(text.encode())
        body = patch[patch.index("\n@@ ") + 1 :]
        headed = f"--- a/target\n+++ b/target\n{body}".encode()
        options = [] if "\n " in body else ["--unidiff-zero"]
        done = subprocess.run(
            ["git", "apply", "--whitespace=nowarn", *options, "-"],
            input=headed,
            capture_output=True,
            cwd=self.folder,
            check=False,
        )
        return None if done.returncode else file.read_bytes().decode()

    def merge(self, base: str, ours: str, theirs: str) -> str | None:
        """Both changes of `base` together; None if they touch each other."""
        for name, text in (("base", base), ("ours", ours), ("theirs", theirs)):
            (self.folder / name).write_bytes(text.encode())
        done = subprocess.run(
            ["git", "merge-file", "-p", "ours", "base", "theirs"],
            capture_output=True,
            cwd=self.folder,
            check=False,
        )
        return None if done.returncode else done.stdout.decode()


def made_history(git: Git, seed: int, commits: int) -> Iterator[FilePatch]:
    """Make the history, then every change of a file in it."""
    rng = random.Random(seed)
    files: Files = {"module.py": _module(rng), "notes.md": _prose(rng, "\r\n"), "empty": ""}
    versions = [dict(files)]
    for _ in range(commits):
        for _ in range(rng.choice((1, 1, 2, 3))):
            _change(rng, files)
        versions.append(dict(files))
    git.run("fast-import", "--quiet", given=_import_stream(versions))
    names = git.run("rev-list", "--reverse", "main").split()[1:]
    diffs = _diffs(git, names)
    for name, old, new in zip(names, versions, versions[1:], strict=False):
        yield from _file_patches(name, diffs.get(name, ()), old, new)


def own_history(git: Git, repository: Path, commits: int) -> Iterator[FilePatch]:
    """Every change of a text file in the newest commits; none if there is no repository."""
    here = ("-C", str(repository))
    log = (*here, "rev-list", "--no-merges", f"--max-count={commits}", "HEAD")
    names = git.run(*log, allowed=(0, 128)).split()
    found = [
        (name, patch) for name, patches in _diffs(git, names, *here).items() for patch in patches
    ]
    changed = [_INDEX.search(patch) for _, patch in found]
    blobs = [blob for one in changed if one is not None for blob in one.groups()]
    texts = git.blobs([blob for blob in blobs if int(blob, 16)], *here)
    for (name, patch), one in zip(found, changed, strict=True):
        assert one is not None, patch
        yield FilePatch(name, texts.get(one[1], ""), texts.get(one[2], ""), patch)


def mutated(rng: random.Random, text: str) -> str:
    """Somebody else has changed the text meanwhile: a few lines, or its line ends."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        match rng.randrange(6):
            case 0:
                lines.insert(at, rng.choice(lines))
            case 1:
                lines.insert(at, _line(rng))
            case 2 if len(lines) > 1:
                del lines[at]
            case 3:
                lines[at] += "!"
            case 4:
                size = rng.randrange(1, 12)
                lines[at:at] = lines[at : at + size]
            case _:
                lines[0:0] = [_line(rng) for _ in range(rng.randrange(1, 4))]
    return "\n".join(lines)


def _import_stream(versions: list[Files]) -> str:
    parts = []
    for number, files in enumerate(versions):
        parts.append(
            f"commit refs/heads/main\ncommitter a <a@example.org> {number} +0000\ndata 1\nc\n"
        )
        parts.append("deleteall\n")
        for path, text in files.items():
            parts.append(f"M 100644 inline {path}\ndata {len(text.encode())}\n{text}\n")
    return "".join(parts)


def _diffs(git: Git, commits: list[str], *options: str) -> dict[str, list[str]]:
    """Return the patches of commits, file by file, of the files that are text."""
    shown = git.run(
        *options,
        "diff-tree",
        "--stdin",
        "-p",
        "-M",
        "--full-index",
        given="\n".join(commits) + "\n",
    )
    _, *parts = _COMMIT.split("\n" + shown)
    return {
        name: [
            f"diff --git {part.rstrip(chr(10))}\n"
            for part in diff.split("\ndiff --git ")[1:]
            if "\n@@ " in part
        ]
        for name, diff in zip(parts[::2], parts[1::2], strict=True)
    }


def _file_patches(
    commit: str, patches: Iterable[str], old: Files, new: Files
) -> Iterator[FilePatch]:
    for patch in patches:
        first = patch.split("\n", 1)[0].split(" ")
        before, after = first[2].removeprefix("a/"), first[3].removeprefix("b/")
        yield FilePatch(commit, old.get(before, ""), new.get(after, ""), patch)


def _change(rng: random.Random, files: Files) -> None:
    path = rng.choice(sorted(files))
    text = files[path]
    crlf = "\r" if "\r\n" in text else ""
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    match rng.randrange(14):
        case 0 | 1 | 2:
            lines[at:at] = [_line(rng) + crlf for _ in range(rng.randrange(1, 5))]
        case 3 | 4 if len(lines) > 20:
            del lines[at : at + rng.randrange(1, 5)]
        case 5 | 6:
            lines[at] = lines[at].replace("e", "E", 1) if "e" in lines[at] else _line(rng) + crlf
        case 7 | 8:
            size = rng.randrange(2, 9)
            moved, lines[at : at + size] = lines[at : at + size], []
            to = rng.randrange(len(lines) + 1)
            lines[to:to] = moved
        case 9:
            lines[at:at] = _function(rng)
        case 10:
            lines = lines[:-1] if lines[-1] == "" and len(lines) > 1 else [*lines, ""]
        case 11:
            ended = "\r\n" if not crlf else "\n"
            files[path] = text.replace("\r\n", "\n").replace("\n", ended)
            return
        case 12:
            files[f"file{len(files)}{rng.randrange(1000)}"] = files.pop(path)
            return
        case _:
            if len(files) > 4:
                del files[path]
            else:
                fresh = rng.choice((_module(rng), _prose(rng, "\n"), ""))
                files[f"new{rng.randrange(1000)}"] = fresh
            return
    files[path] = "\n".join(lines)


def _line(rng: random.Random) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(rng.randrange(0, 6)))


def _function(rng: random.Random) -> list[str]:
    name = rng.choice("abcdefgh")
    body = [f"    {_line(rng)}" for _ in range(rng.randrange(1, 6))]
    return [f"def {name}(self):", *body, "    return None", ""]


def _module(rng: random.Random) -> str:
    return "\n".join(line for _ in range(rng.randrange(3, 12)) for line in _function(rng))


def _prose(rng: random.Random, ended: str) -> str:
    return "".join(_line(rng) + ended for _ in range(rng.randrange(5, 60)))
