"""Public SSH keys as a line of `authorized_keys` or a `.pub` file holds them."""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import Final

from antiphon_kernel.types.quoting import quote

KEY_TYPES: Final = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "ssh-rsa",
)

RSA_BITS: Final = 2_048
"""Smallest RSA key that is taken."""

LONGEST_KEY: Final = 16_000
"""Characters of a line with a key."""

_AUTHORITY: Final = "cert-authority"
_PRINCIPALS: Final = "principals"
_OPTION: Final = re.compile(r'([A-Za-z-]+)(?:="([^"]*)")?(,|\s+)')
_CERTIFIED_NAME: Final = re.compile(r"[^\s,*?!]+")
"""A name in the option: OpenSSH takes it as it is, and other servers as a pattern."""


class PublicKeyError(ValueError):
    """A text is no public key that is taken; the message is a sentence without a full stop."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """One public key."""

    kind: str
    fingerprint: str
    """`SHA256:…`, as OpenSSH prints it."""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class CertAuthority:
    """A key whose owner certifies the keys of others."""

    key: PublicKey
    principals: tuple[str, ...] | None = None
    """Names of which a certificate has to give one; None: any."""


@dataclass(frozen=True, slots=True)
class KeyCertificate:
    """A certificate for a key, verified by whoever took it from the client."""

    authority: str
    """Fingerprint of the authority's key."""
    principals: tuple[str, ...]
    """Names that it gives to whoever has the key."""


def parse_authority(line: str) -> CertAuthority | None:
    """Read `cert-authority[,principals="NAME,…"] TYPE BASE64 [COMMENT]`, as in `authorized_keys`.

    Returns:
        None for a line without options.

    Raises:
        PublicKeyError: saying what is wrong.
    """
    rest, options = line.lstrip(), dict[str, str | None]()
    if rest.startswith(KEY_TYPES):
        return None
    separator = ","
    while separator == "," and (found := _OPTION.match(rest)):
        name, value, separator = found[1].lower(), found[2], found[3]
        if name not in (_AUTHORITY, _PRINCIPALS) or name in options:
            raise PublicKeyError(
                f'of options, {_AUTHORITY} and {_PRINCIPALS}="NAME,…" are taken, once each, found'
                f" {quote(found[1])}"
            )
        options[name] = value
        rest = rest[found.end() :]
    if separator == "," or options.get(_AUTHORITY, "") is not None:
        raise PublicKeyError(
            f"expected TYPE BASE64 [COMMENT], or that behind {_AUTHORITY}, found {quote(line[:40])}"
        )
    principals = options.get(_PRINCIPALS)
    names = None if principals is None else tuple(principals.split(","))
    if _PRINCIPALS in options and not all(map(_CERTIFIED_NAME.fullmatch, names or ("",))):
        raise PublicKeyError(f'expected {_PRINCIPALS}="NAME,…" without patterns and blanks')
    return CertAuthority(parse_public_key(rest), names)


def parse_public_key(line: str) -> PublicKey:
    """Read `TYPE BASE64 [COMMENT]`.

    Raises:
        PublicKeyError: saying what is wrong.
    """
    words = line.split(None, 2)
    if len(line) > LONGEST_KEY or len(words) < 2 or words[0] not in KEY_TYPES:
        raise PublicKeyError(
            f"expected one line TYPE BASE64 [COMMENT] of a public key, TYPE one of"
            f" {', '.join(KEY_TYPES)}, found {quote(line[:40])}"
        )
    kind, encoded = words[:2]
    try:
        blob = b64decode(encoded, validate=True)
        stated, rest = _string(blob)
    except ValueError as error:
        raise PublicKeyError(f"the key behind {kind} is damaged: {error}") from error
    if stated != kind.encode():
        raise PublicKeyError(f"the key behind {kind} is one of another type")
    if kind == "ssh-rsa":
        _check_rsa(rest)
    return PublicKey(kind, fingerprint_of_key(blob), words[2] if len(words) > 2 else "")


def fingerprint_of_key(blob: bytes) -> str:
    """Return the fingerprint of a key in the form in which SSH sends it."""
    return "SHA256:" + b64encode(hashlib.sha256(blob).digest()).decode("ascii").rstrip("=")


def _string(data: bytes) -> tuple[bytes, bytes]:
    """Split off a text that is preceded by its length; raises ValueError."""
    size = int.from_bytes(data[:4], "big")
    if len(data) < 4 + size:
        raise ValueError("it breaks off")
    return data[4 : 4 + size], data[4 + size :]


def _check_rsa(rest: bytes) -> None:
    try:
        modulus, end = _string(_string(rest)[1])
    except ValueError as error:
        raise PublicKeyError(f"the key behind ssh-rsa is damaged: {error}") from error
    bits = int.from_bytes(modulus, "big").bit_length()
    if bits < RSA_BITS or end:
        raise PublicKeyError(f"an RSA key has at least {RSA_BITS} bits, this one has {bits}")
