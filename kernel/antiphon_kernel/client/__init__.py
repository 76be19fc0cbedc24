"""Common parts of all kernel clients: address, replica of a context, tool calls."""
