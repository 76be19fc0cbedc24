"""OpenSSH certificates as clients offer them in the place of keys."""

from __future__ import annotations

from typing import Final

import asyncssh
from asyncssh.packet import String
from asyncssh.public_key import SSHOpenSSHCertificate, decode_ssh_certificate

from antiphon_kernel.types.public_keys import PublicKeyError, parse_public_key

_SHA1: Final = b"ssh-rsa"
"""The type of a signature by RSA with SHA-1, which OpenSSH takes no more either."""


def certificate_in(data: bytes) -> SSHOpenSSHCertificate | None:
    """Return the certificate in what a client offers; its signature is one of its authority.

    None for a plain key, and for a certificate that never counts: damaged or with a critical
    option that is not known, for a key that would not be taken either, without a name.
    """
    try:
        found = decode_ssh_certificate(data)
        if not isinstance(found, SSHOpenSSHCertificate):
            return None
        parse_public_key(line_of(found.key))
    except (asyncssh.KeyImportError, PublicKeyError):
        return None
    authority = String(found.signing_key.public_data)
    signature = data[data.rindex(authority) + len(authority) :]
    is_by_sha1 = signature[4:].startswith(String(_SHA1))
    return None if is_by_sha1 or not found.principals else found


def line_of(key: asyncssh.SSHKey) -> str:
    """Return a key as a `.pub` file has it."""
    return key.export_public_key("openssh").decode("ascii", "replace").strip()
