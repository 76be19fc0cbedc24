"""Files of the project: what their bytes are as the text of a block."""
