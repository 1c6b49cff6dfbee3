"""Arrays of any library, their precision, and arguments made of them."""
