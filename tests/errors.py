"""Errors that tests expect."""

from __future__ import annotations

import pytest

from antiphon_kernel.types.errors import AntiphonError, ErrorCode


def raises(code: ErrorCode) -> pytest.RaisesExc[AntiphonError]:
    """Like `pytest.raises`, for an error of the kernel with this code."""

    def has_code(error: AntiphonError) -> bool:
        assert error.code is code, f"{error.code} instead of {code}: {error}"
        return True

    return pytest.raises(AntiphonError, check=has_code)
