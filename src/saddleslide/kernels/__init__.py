"""Vector updates and whole inner loops: reference ones in NumPy, compiled ones, and the switch between them."""
