"""Schedules of recursive sliding: levels, loops, stages, and the theorem behind them."""
