"""Configuration of a kernel: its models, what they may do, and instructions of the project.

May import `tools` and what is below it; `turns` and `daemon` use it.
"""

from antiphon_kernel.config.api_keys import hide_variables
from antiphon_kernel.config.known_models import with_known_limits
from antiphon_kernel.config.loading import load_config, read_untrusted
from antiphon_kernel.config.local_servers import ANSWER_SECONDS, find_local_models
from antiphon_kernel.config.project_instructions import read_project_instructions
from antiphon_kernel.config.settings import (
    NO_MODEL,
    ConfigProblem,
    Discovery,
    KernelConfig,
    PermissionRules,
)
