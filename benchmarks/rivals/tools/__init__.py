"""One file for each tool, all with the signature of :class:`benchmarks.rivals.outcome.Fit`."""
