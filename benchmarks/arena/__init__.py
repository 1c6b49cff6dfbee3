"""External solvers on the problems of the suite, to the same certified gap; see docs/peers.md."""
