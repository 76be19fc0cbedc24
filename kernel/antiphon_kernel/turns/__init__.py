"""Turns: models and agents that answer messages, and commands that they and people run."""

from antiphon_kernel.registry import tools_of
from antiphon_kernel.turns import (
    agent_listing,
    distilling,
    model_listing,
    request,
    server_listing,
    tools,
)
from antiphon_kernel.turns.models import Models, load_models
from antiphon_kernel.turns.runner import TurnRunner

TURN_TOOLS = tools_of(tools, request, model_listing, server_listing, distilling, agent_listing)
