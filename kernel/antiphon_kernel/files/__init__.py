"""Files of the project: their bytes on disk, and the text in them."""
