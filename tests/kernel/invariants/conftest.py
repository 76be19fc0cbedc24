"""The source of choices of one random case."""

from __future__ import annotations

import random

import pytest


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(request.param)
