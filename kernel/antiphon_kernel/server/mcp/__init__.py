"""The endpoint `/mcp`: tools and resources of a kernel for programs that speak MCP, over HTTP."""
