"""Fixed heads, values by convex optimisation."""
