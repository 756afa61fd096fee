"""Group norms, gauges, products of the solver."""
