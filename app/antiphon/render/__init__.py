"""Pure renderers: a cell's view, a width and a theme in, lines of styled cells out."""
