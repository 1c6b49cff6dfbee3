"""Vector updates: reference ones in NumPy."""
