"""The unit round-off of float64, and the factors that keep bounds true which are computed in float64 themselves."""

U = 2.0**-53  # unit round-off of float64
UP_FEW = 1 + 1e-12  # covers a few operations on positive terms
UP = 1 + 1e-9  # covers sums of up to a million positive terms
UP_MANY = 1 + 1e-6  # covers longer sums, and formulas that were simplified upward
