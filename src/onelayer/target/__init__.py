"""A target: f on a domain, given as a formula, a callable or samples, and how fast it can change."""
