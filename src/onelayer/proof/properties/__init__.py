"""Properties of a layer, proved: ranges, slopes, monotonicity, convexity, Lipschitz constants."""
