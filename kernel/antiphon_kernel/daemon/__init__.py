"""One kernel process: its lock, its address file, its doors, its life and its end."""
