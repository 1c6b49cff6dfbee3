"""What is proved: bounds on the gap of a point, and what is known of it. Knows no method."""
