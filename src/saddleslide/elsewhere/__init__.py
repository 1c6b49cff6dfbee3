"""Arrays that lie elsewhere, on another library's side: methods written in NumPy's functions run there on them."""

from saddleslide.elsewhere.carried import Elsewhere
from saddleslide.elsewhere.functions import fill_in
from saddleslide.elsewhere.traffic import Traffic, traffic

__all__ = ["Elsewhere", "Traffic", "traffic"]

fill_in()
