"""The document on screen: one scrolling widget that draws blocks as cells."""
