"""What models read of a context: turns, rounds, paths, the text stream and its cache points."""
