"""Fractional order keys: strings that sort where a block stands.

A key is an integer part and a fraction, both in base 62 (digits sort as ASCII does). The first
letter says how many digits the integer part has, so that appending at either end counts on
instead of growing the key; only a bisection lengthens the fraction. Every key that is returned has
been compared with both neighbours first.
"""

from __future__ import annotations

import re

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_VALUE = {digit: value for value, digit in enumerate(DIGITS)}
_BASE = len(DIGITS)
_WORD = re.compile(r"[0-9A-Za-z]+")
_ZERO = "a0"
_HEADS = DIGITS[10:]
"""The letters that an integer part begins with, from the lowest."""


class NoKeyBetweenError(ValueError):
    """There is no key between the two given ones; the caller has to re-key a neighbour."""


def is_order_key(key: str) -> bool:
    """Return whether `key` has the shape of a key made here."""
    return _WORD.fullmatch(key) is not None and _integer_part(key) is not None


def key_between(low: str | None, high: str | None) -> str:
    """A key that sorts after `low` and before `high`; None stands for the open end.

    Raises:
        NoKeyBetweenError: if `low >= high`, if a key has other characters than `DIGITS`, or if
            nothing sorts between the two (as between "a" and "a0").
    """
    for key in (low, high):
        if key is not None and not _WORD.fullmatch(key):
            raise NoKeyBetweenError(f"an order key has only the characters 0-9A-Za-z: {key!r}")
    if low is not None and high is not None and low >= high:
        raise NoKeyBetweenError(f"the lower order key {low!r} does not sort before {high!r}")
    key = _between(low, high)
    if (low is not None and key <= low) or (high is not None and key >= high):
        raise NoKeyBetweenError(f"no order key sorts between {low!r} and {high!r}")
    return key


def _between(low: str | None, high: str | None) -> str:
    if low is None and high is None:
        return _ZERO
    low_integer, high_integer = (_integer_part(key) if key else None for key in (low, high))
    if (low and not low_integer) or (high and not high_integer):  # of foreign shape
        return _midpoint(low or "", high)
    if low is None or low_integer is None:
        assert high is not None and high_integer is not None
        if high_integer < high:
            return high_integer
        below = _step(high_integer, -1)
        return below if below is not None else _midpoint("", high)
    if low_integer == high_integer and high is not None:
        size = len(low_integer)
        return low_integer + _midpoint(low[size:], high[size:])
    above = _step(low_integer, +1)
    if above is not None and (high is None or above < high):
        return above
    return low_integer + _midpoint(low[len(low_integer) :], None)


def _integer_part(key: str) -> str | None:
    """The integer part of a key made here; None for a key of foreign shape."""
    if key[0] not in _HEADS:
        return None
    size = _size(_HEADS.index(key[0]))
    if len(key) < size or (len(key) > size and key.endswith("0")):
        return None
    return key[:size]


def _size(head: int) -> int:
    """The length of an integer part: two at zero, one more for each letter on either side."""
    return max(27 - head, head - 24)


def _step(integer: str, by: int) -> str | None:
    """The integer part one up or down; None at the end of the range."""
    digits = list(integer[1:])
    for at in range(len(digits) - 1, -1, -1):
        value = _VALUE[digits[at]] + by
        if 0 <= value < _BASE:
            digits[at] = DIGITS[value]
            return integer[0] + "".join(digits)
        digits[at] = DIGITS[0] if by > 0 else DIGITS[-1]
    head = _HEADS.index(integer[0]) + by
    if not 0 <= head < len(_HEADS):
        return None
    return _HEADS[head] + (DIGITS[0] if by > 0 else DIGITS[-1]) * (_size(head) - 1)


def _midpoint(low: str, high: str | None) -> str:
    """A digit string between two fractions; `low` may be empty (0), `high` None (1)."""
    prefix: list[str] = []
    while True:
        low_digit = _VALUE[low[0]] if low else 0
        if high is not None and not high:
            raise NoKeyBetweenError("nothing sorts below an empty fraction")
        high_digit = _VALUE[high[0]] if high is not None else _BASE
        if high_digit - low_digit > 1:
            # Rounded away from the end bisected against, a digit lasts six halvings, not five.
            middle = (low_digit + high_digit + (high is not None)) // 2
            return "".join(prefix) + DIGITS[middle]
        if high_digit == low_digit:
            prefix.append(DIGITS[low_digit])
            low, high = low[1:], high[1:] if high is not None else None
            continue
        if high is not None and len(high) > 1:
            return "".join(prefix) + high[0]
        prefix.append(DIGITS[low_digit])
        low, high = low[1:], None
