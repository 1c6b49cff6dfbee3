"""Which method, with which settings, at what cost."""
