"""Other methods for the same problems, one a file, all with the same verbs: start, advance, output."""

from saddleslide.baselines.base import Description, Method, Option
from saddleslide.baselines.catalogue import Methods, methods

__all__ = ["Description", "Method", "Methods", "Option", "methods"]
