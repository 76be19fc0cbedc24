"""Configuration of a kernel: its models, what they may do, and instructions of the project.

May import `tools` and what is below it; `turns` and `daemon` use it.
"""

from antiphon_kernel.config.project_instructions import read_project_instructions

__all__ = ["read_project_instructions"]
