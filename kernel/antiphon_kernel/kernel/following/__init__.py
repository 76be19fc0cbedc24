"""What happens to blocks, told to those who asked to know."""
