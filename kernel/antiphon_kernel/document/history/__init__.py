"""History of each character of a text: who wrote it, who removed it, where it is."""
