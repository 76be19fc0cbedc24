"""The screens: the document with everything around it, and help."""
