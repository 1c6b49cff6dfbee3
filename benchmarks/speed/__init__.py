"""How fast the package is: ratios measured side by side in one run."""
