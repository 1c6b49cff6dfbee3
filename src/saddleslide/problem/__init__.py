"""What is asked: a saddle problem, or an objective that becomes one."""

from saddleslide.problem.saddle import Enclosure, SaddleProblem

__all__ = ["Enclosure", "SaddleProblem"]
