"""Public SSH keys as a line of `authorized_keys` or a `.pub` file holds them."""

from __future__ import annotations

import hashlib
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


class PublicKeyError(ValueError):
    """A text is no public key that is taken; the message is a sentence without a full stop."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """One public key."""

    kind: str
    fingerprint: str
    """`SHA256:…`, as OpenSSH prints it."""
    comment: str = ""


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
    modulus = end = b""
    try:
        blob = b64decode(encoded, validate=True)
        stated, rest = _string(blob)
        if stated == b"ssh-rsa" == kind.encode():
            modulus, end = _string(_string(rest)[1])
    except ValueError as error:
        raise PublicKeyError(f"the key behind {kind} is damaged: {error}") from error
    if stated != kind.encode():
        raise PublicKeyError(f"the key behind {kind} is one of another type")
    bits = int.from_bytes(modulus, "big").bit_length()
    if kind == "ssh-rsa" and (bits < RSA_BITS or end):
        raise PublicKeyError(f"an RSA key has at least {RSA_BITS} bits, this one has {bits}")
    digest = b64encode(hashlib.sha256(blob).digest()).decode("ascii").rstrip("=")
    return PublicKey(kind, f"SHA256:{digest}", words[2] if len(words) > 2 else "")


def _string(data: bytes) -> tuple[bytes, bytes]:
    """Split off a text that is preceded by its length; raises ValueError."""
    size = int.from_bytes(data[:4], "big")
    if len(data) < 4 + size:
        raise ValueError("it breaks off")
    return data[4 : 4 + size], data[4 + size :]
