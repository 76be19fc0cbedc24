"""What is made of a replay: frames, casts, pictures, pages and recordings."""
