"""How a run goes: limits, judge, history, checkpoint, result."""
