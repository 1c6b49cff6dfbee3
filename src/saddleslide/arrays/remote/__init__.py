"""Remote arrays, on another library's side: methods written in NumPy's functions run there on them."""

# Remote arrays find NumPy's functions in tables that this module fills.
from saddleslide.arrays.remote import functions as functions
from saddleslide.arrays.remote.array import RemoteArray

__all__ = ["RemoteArray"]
