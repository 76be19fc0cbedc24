"""Public keys of somebody, from a forge or from a file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from antiphon_kernel.types.errors import AntiphonError, ErrorCode
from antiphon_kernel.types.public_keys import PublicKeyError, parse_public_key
from antiphon_kernel.types.quoting import quote

FORGE_VARIABLE: Final = "ANTIPHON_FORGE"
"""In the environment: another forge than GitHub that serves keys at /USER.keys."""

GITHUB: Final = "https://github.com"

LONGEST_ANSWER: Final = 200_000
"""Bytes of a file of keys."""

KEYS_AT_ONCE: Final = 50

_SECONDS: Final = 10.0
_USER: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})")


def keys_of_user(user: str) -> list[str]:
    """Return the lines of a user's public keys, as the forge shows them to everybody.

    Raises:
        AntiphonError: invalid_params if there is no such user or the user has no key that is taken;
            no_kernel if the forge cannot be reached.
    """
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, build_opener

    if not _USER.fullmatch(user):
        raise AntiphonError(
            ErrorCode.INVALID_PARAMS, f"{quote(user)} cannot be a user of GitHub.", field="name"
        )
    url = f"{os.environ.get(FORGE_VARIABLE, GITHUB).rstrip('/')}/{user}.keys"
    try:
        with build_opener().open(
            Request(url, headers={"User-Agent": "antiphon"}), timeout=_SECONDS
        ) as answer:
            body = answer.read(LONGEST_ANSWER + 1)
    except HTTPError as error:
        raise _refused(f"{url} answers with {error.code}: is the name right?") from error
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise AntiphonError(
            ErrorCode.NO_KERNEL,
            f"{url} cannot be read ({reason}): try again, or give the keys in a file (--keys).",
        ) from error
    return _lines(body, url)


def keys_in_file(path: Path) -> list[str]:
    """Return the lines of a file of public keys.

    Raises:
        AntiphonError: invalid_params if it cannot be read, or holds no key or something else.
    """
    try:
        with path.open("rb") as file:
            body = file.read(LONGEST_ANSWER + 1)
    except OSError as error:
        raise _refused(f"{path} cannot be read: {error.strerror}.") from error
    return _lines(body, str(path))


def _lines(body: bytes, where: str) -> list[str]:
    if len(body) > LONGEST_ANSWER:
        raise _refused(f"{where} has more than {LONGEST_ANSWER} bytes: it is no list of keys.")
    lines = [line.strip() for line in body.decode("utf-8", "replace").splitlines()]
    keys = [line for line in lines if line and not line.startswith("#")]
    for number, line in enumerate(keys, 1):
        try:
            parse_public_key(line)
        except PublicKeyError as error:
            raise _refused(f"Key {number} of {where}: {error}.") from error
    if not keys or len(keys) > KEYS_AT_ONCE:
        raise _refused(f"{where} has {len(keys)} keys: from 1 to {KEYS_AT_ONCE} are taken.")
    return keys


def _refused(message: str) -> AntiphonError:
    return AntiphonError(ErrorCode.INVALID_PARAMS, message)
