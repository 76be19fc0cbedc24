"""Agents of others that take part over ACP, for which the kernel is the client."""
