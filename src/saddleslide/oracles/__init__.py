"""What is counted: the only door to f, g and B."""
