"""What every client of a kernel needs: where it is, a replica of a context, tool calls."""
