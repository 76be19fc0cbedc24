"""Configuration of a kernel: its models, what they may do, and instructions of the project.

May import `tools` and what is below it; `turns` and `daemon` use it.
"""

from antiphon_kernel.config.agents import AgentConfig
from antiphon_kernel.config.api_keys import KEY_VARIABLES, hide_variables
from antiphon_kernel.config.loading import (
    NO_MODEL,
    ConfigProblem,
    ContextTable,
    Discovery,
    FilesTable,
    KernelConfig,
    load_config,
    read_untrusted,
)
from antiphon_kernel.config.model_discovery import find_local_models, with_known_limits
from antiphon_kernel.config.project_instructions import read_project_instructions
from antiphon_kernel.config.project_servers import ProjectServer, project_servers
