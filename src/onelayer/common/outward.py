"""The unit round-off of float64, and factors that keep a bound true although it is itself computed in float64."""

U = 2.0**-53  # unit round-off of float64
UP_FEW = 1 + 1e-12  # covers a few operations on positive terms
UP = 1 + 1e-9  # covers sums of up to a million positive terms
UP_MANY = 1 + 1e-6  # covers longer sums, and formulas that were simplified upward
