"""Remote arrays, on another library's side: methods written in NumPy's functions run there on them."""

from saddleslide.arrays.remote.array import Remote, Traffic, traffic
from saddleslide.arrays.remote.functions import fill_in

__all__ = ["Remote", "Traffic", "traffic"]


fill_in()
