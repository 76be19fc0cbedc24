"""Export and import of contexts."""
