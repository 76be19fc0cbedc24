"""Pure functions on strings: lines, edits, offsets, order keys. Units are code points and lines."""
