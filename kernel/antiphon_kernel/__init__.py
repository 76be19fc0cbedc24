"""The headless kernel: hosts contexts, merges what people and models write, keeps it on disk."""
