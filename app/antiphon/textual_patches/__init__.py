"""Replacements for private parts of Textual, one module for each."""
