"""Certificates of guests, made by the real ssh-keygen and shown by the real OpenSSH client."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.sharing import KEYGEN, SharedProject, needs_openssh

pytestmark = needs_openssh

DENIED = "Permission denied (publickey)."


class Authority:
    """The key of somebody who certifies keys of others."""

    def __init__(self, project: SharedProject, name: str, *options: str) -> None:
        self.project = project
        self.key = project.key(name, *options)

    def let_in(self, options: str = "cert-authority", role: str = "editor") -> None:
        """Let in everybody who has a certificate of this authority."""
        file = self.key.with_suffix(".authorized")
        file.write_text(f"# ours\n{options} {Path(f'{self.key}.pub').read_text()}")
        self.project.share("--keys", str(file), "--role", role)

    def certify(self, name: str, *options: str, principals: str = "") -> str:
        """Certify somebody's key; return the option by which their client shows that."""
        public = f"{self.project.key(name)}.pub"
        named = ["-n", principals or name] if principals != "none" else []
        command = [KEYGEN or "", "-q", "-s", str(self.key), "-I", name, *named, *options, public]
        subprocess.run(command, check=True, capture_output=True)
        made = Path(f"{self.project.key(name)}-cert.pub")
        return f"-oCertificateFile={made.rename(made.with_suffix('.shown'))}"

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.key)


def fingerprint_of(key: Path) -> str:
    command = [KEYGEN or "", "-lf", f"{key}.pub"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[1]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedProject]:
    one = SharedProject(tmp_path_factory.mktemp("certified"))
    one.let_in("ed")
    yield one
    one.close()


@pytest.fixture(scope="module")
def authority(project: SharedProject) -> Authority:
    one = Authority(project, "authority")
    one.let_in()
    return one


def test_certificate_lets_in_as_the_name_in_it_whatever_the_line_says(
    project: SharedProject, authority: Authority
) -> None:
    shown = authority.certify("carl")
    assert project.guest("carl", shown, "send", stdin=b"hello", user="ed").returncode == 0
    members = {one["username"]: one["role"] for one in project.tool("kernel.members")["members"]}
    assert members["carl"] == "editor"
    (key,) = [one for one in project.tool("key.list")["keys"] if one["username"] == "carl"]
    assert (key["fingerprint"], key["authority"], key["state"]) == (
        fingerprint_of(project.key("carl")),
        authority.fingerprint,
        "good",
    )
    assert DENIED in project.guest("carl", "tail").stderr  # the key by itself counts for nothing
    shared = project.succeed("share").stdout
    assert f"whoever has a certificate of {authority.fingerprint} (editor)" in shared
    listed = project.succeed("share", "--list").stdout
    assert f"carl by certificate of {authority.fingerprint}  good" in listed
    assert f"{authority.fingerprint}  authority for any name (editor)  good" in listed
    log = project.succeed("log").stdout
    assert f"added the authority {authority.fingerprint}" in log
    assert f"of carl, an editor, by a certificate of {authority.fingerprint}" in log


def test_further_keys_of_one_name_are_of_the_same_person_and_of_nobody_else(
    project: SharedProject, authority: Authority
) -> None:
    for number in (1, 2):
        shown = authority.certify(f"dora{number}", principals="dora,ed")
        assert project.guest(f"dora{number}", shown, "export").returncode == 0
    shown = authority.certify("false-ed", principals="ed")
    assert project.guest("false-ed", shown, "export").returncode == 0
    whose = {one["fingerprint"]: one["username"] for one in project.tool("key.list")["keys"]}
    of = {name: whose[fingerprint_of(project.key(name))] for name in ("dora1", "dora2", "false-ed")}
    assert of == {"dora1": "dora", "dora2": "dora", "false-ed": "ed2"}


@pytest.mark.parametrize(
    "options",
    [
        ("-V", "-2d:-1d"),
        ("-V", "+1d:+2d"),
        ("-h",),
        ("-O", "source-address=192.0.2.0/24"),
        ("-O", "critical:nobody-knows@example.org=x"),
        ("-O", "verify-required"),
        ("-O", "force-command=/bin/sh"),
    ],
    ids=" ".join,
)
def test_certificate_that_does_not_count_lets_nobody_in(
    project: SharedProject, authority: Authority, options: tuple[str, ...]
) -> None:
    shown = authority.certify("finn", *options)
    done = project.guest("finn", shown, "export")
    if options[-1].startswith("force-command"):
        assert done.returncode == 1 and "Only tail, send, export can be run here" in done.stderr
    else:
        assert done.returncode == 255 and DENIED in done.stderr


def test_certificate_of_anybody_else_or_without_a_name_lets_nobody_in(
    project: SharedProject, authority: Authority
) -> None:
    other = Authority(project, "other")
    shown = [other.certify("gil"), Authority(project, "ed").certify("gil")]
    shown.append(authority.certify("gil", principals="none"))
    for one in shown:
        assert DENIED in project.guest("gil", one, "export").stderr
    project.key("authority")
    assert DENIED in project.guest("authority", "export").stderr


def test_certificate_by_sha1_lets_nobody_in(project: SharedProject) -> None:
    by_rsa = Authority(project, "rsa", "-t", "rsa", "-b", "2048")
    by_rsa.let_in()
    assert DENIED in project.guest("hal", by_rsa.certify("hal", "-t", "ssh-rsa"), "export").stderr
    assert project.guest("hal", by_rsa.certify("hal"), "export").returncode == 0


def test_principals_of_the_authority_and_its_role_limit_whom_it_lets_in(
    project: SharedProject,
) -> None:
    narrow = Authority(project, "narrow")
    narrow.let_in('cert-authority,principals="ines,jo"', role="viewer")
    assert DENIED in project.guest("kai", narrow.certify("kai"), "export").stderr
    shown = narrow.certify("ines", principals="kai,ines")
    assert project.guest("ines", shown, "export").returncode == 0
    refused = project.guest("ines", shown, "send", stdin=b"x")
    assert refused.returncode == 1 and "viewer" in refused.stderr


def test_limits_within_a_certificate_hold(project: SharedProject, authority: Authority) -> None:
    shown = authority.certify(
        "lou", "-O", "no-pty", "-O", "source-address=127.0.0.0/8,::1/128", principals="lou"
    )
    assert "PTY allocation request failed" in project.guest("lou", "-tt", shown).stderr
    forced = authority.certify("lou", "-O", "force-command=export", principals="lou")
    done = project.guest("lou", forced, "send", stdin=b"not sent")
    assert done.returncode == 0 and done.stdout and "not sent" not in done.stdout


def test_revoked_key_stays_out_with_any_certificate_and_a_known_one_needs_none(
    project: SharedProject, authority: Authority
) -> None:
    assert project.guest("max", authority.certify("max"), "export").returncode == 0
    project.tool("key.revoke", principal="max")
    for options in (("-z", "2"), ("-V", "always:forever")):
        assert DENIED in project.guest("max", authority.certify("max", *options), "export").stderr
    again = authority.certify("max-again", principals="max")
    assert DENIED in project.guest("max-again", again, "export").stderr
    project.let_in("nina")
    shown = authority.certify("nina", principals="somebody")
    assert project.guest("nina", shown, "export").returncode == 0
    project.tool("key.revoke", principal="nina")
    assert DENIED in project.guest("nina", shown, "export").stderr


def test_revoked_authority_ends_the_sessions_that_came_by_it(project: SharedProject) -> None:
    leaving = Authority(project, "leaving")
    leaving.let_in()
    shown = leaving.certify("olaf")
    with ExitStack() as stack:
        certified = stack.enter_context(project.guest_terminal("olaf", shown))
        known = stack.enter_context(project.guest_terminal("ed"))
        for terminal in (certified, known):
            terminal.wait_for("WRITE")
        project.tool("key.revoke", fingerprint=leaving.fingerprint)
        assert certified.wait_for_end() == 1
        assert "revoked the key" in certified.text
        known.type("still here")
        known.wait_for("still here")
    assert DENIED in project.guest("olaf", shown, "export").stderr
    (key,) = [one for one in project.tool("key.list")["keys"] if one["username"] == "olaf"]
    assert key["state"] == "revoked"
    assert f"revoked the authority {leaving.fingerprint}" in project.succeed("log").stdout
    following = Authority(project, "following")
    following.let_in()
    assert project.guest("olaf", following.certify("olaf"), "export").returncode == 0
    leaving.let_in()
    assert project.guest("pia", leaving.certify("pia"), "export").returncode == 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ('command="x"', "of options, cert-authority and principals"),
        ('principals="a"', "expected TYPE BASE64 [COMMENT], or that behind cert-authority"),
        ('cert-authority,principals="a*"', "without patterns and blanks"),
        ("cert-authority,principals", "without patterns and blanks"),
        ("cert-authority,", "expected TYPE BASE64"),
        ("cert-authority,cert-authority", "once each"),
        ("cert-authority=yes", "expected TYPE BASE64"),
    ],
)
def test_line_with_other_options_is_refused(
    project: SharedProject, tmp_path: Path, options: str, why: str
) -> None:
    file = tmp_path / "keys"
    public = Path(f"{project.key('quin')}.pub").read_text()
    file.write_text(f"{options} {public}")
    refused = project.run("share", "--keys", str(file))
    assert refused.returncode == 1 and why in refused.stderr
