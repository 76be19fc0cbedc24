"""Where messages are written: a draft that the others see while it is typed."""
