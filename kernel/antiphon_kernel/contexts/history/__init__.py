"""Authors and versions of the characters of blocks, read from the journal."""
