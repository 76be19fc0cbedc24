"""Files of the project: their bytes, their texts, and what stands on disk."""
