"""Turns: models that answer submissions, and the shell commands that they and people run."""

from antiphon_kernel.turns.all_tools import TURN_TOOLS
from antiphon_kernel.turns.models import Models, load_models
from antiphon_kernel.turns.runner import TurnRunner
