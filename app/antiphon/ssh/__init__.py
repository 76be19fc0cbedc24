"""The SSH host, which lets guests in by their keys."""
