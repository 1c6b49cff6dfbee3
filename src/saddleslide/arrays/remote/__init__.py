"""Arrays that lie elsewhere, on another library's side: methods written in NumPy's functions run there on them."""

from saddleslide.arrays.remote.carried import Elsewhere
from saddleslide.arrays.remote.functions import fill_in
from saddleslide.arrays.remote.traffic import Traffic, traffic

__all__ = ["Elsewhere", "Traffic", "traffic"]

fill_in()
