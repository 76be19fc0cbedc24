"""Frames, casts, pictures, pages and recordings, made of replays."""
