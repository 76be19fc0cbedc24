"""MCP servers of others, whose tools models may call: one connection for each kernel and server.

The library is imported when the first of them is connected to.
"""

from antiphon_kernel.mcp_servers.elicitation import Answer, Elicitation
from antiphon_kernel.mcp_servers.json_schema import check_value
from antiphon_kernel.mcp_servers.server_config import McpServerConfig
from antiphon_kernel.mcp_servers.server_tools import McpTool
from antiphon_kernel.mcp_servers.servers import (
    START_SECONDS,
    McpServerFailed,
    McpServers,
    ServerState,
)
from antiphon_kernel.mcp_servers.tool_results import ResultFile, read_result
