"""What people call: solve, plan, run, compare, certify, resume."""
