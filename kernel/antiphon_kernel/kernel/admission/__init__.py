"""What a raw update of a connected client may do, decided before it reaches the document."""
