"""What is known of a problem: constants with their origins, norms, noise, costs."""
