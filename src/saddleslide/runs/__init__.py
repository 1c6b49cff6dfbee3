"""How a run goes: limits, judge, history, checkpoint, result."""

from typing import TYPE_CHECKING

from saddleslide.catalogue import load_on_demand

if TYPE_CHECKING:
    from saddleslide.runs.checkpoint import fingerprint, write_checkpoint
    from saddleslide.runs.figure import plot_result
    from saddleslide.runs.progress import Progress
    from saddleslide.runs.record import write_result
    from saddleslide.runs.snapshot import take_snapshot
    from saddleslide.runs.stages import StageJudge

__all__ = ["Progress", "StageJudge", "fingerprint", "plot_result", "take_snapshot", "write_checkpoint", "write_result"]

# What a run has only where it is asked for: a checkpoint, a figure, a file of its result, a line on the terminal, a
# schedule.
_HOMES = {
    "checkpoint": ("fingerprint", "write_checkpoint"),
    "figure": ("plot_result",),
    "progress": ("Progress",),
    "record": ("write_result",),
    "snapshot": ("take_snapshot",),
    "stages": ("StageJudge",),
}

if not TYPE_CHECKING:
    # Unseen by type checkers, which would take every misspelt name for one of these.
    __getattr__, __dir__ = load_on_demand(__name__, _HOMES)
