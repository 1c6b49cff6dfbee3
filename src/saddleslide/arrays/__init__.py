"""Arrays of any library, their precision, and arguments made of them."""

from typing import TYPE_CHECKING

from saddleslide.catalogue import load_on_demand

if TYPE_CHECKING:
    from saddleslide.arrays.remote import RemoteArray
    from saddleslide.arrays.remote.products import cosine_transform, hartley_transform, sparse_product

__all__ = ["RemoteArray", "cosine_transform", "hartley_transform", "sparse_product"]

# What computes on another library's side: read when the first array from there arrives.
_HOMES = {"remote": ("RemoteArray",), "remote.products": ("cosine_transform", "hartley_transform", "sparse_product")}

if not TYPE_CHECKING:
    # Unseen by type checkers, which would take every misspelt name for one of these.
    __getattr__, __dir__ = load_on_demand(__name__, _HOMES)
