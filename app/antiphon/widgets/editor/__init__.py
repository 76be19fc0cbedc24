"""Editing one cell in place while others write into it."""
