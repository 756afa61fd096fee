"""One module per tool, all with the signature of :class:`benchmarks.rivals.outcome.Fit`."""
