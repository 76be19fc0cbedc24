"""The `antiphon` command."""
