"""Text as plain strings: lines, edits, patches, differences, order keys, offsets (code points)."""
