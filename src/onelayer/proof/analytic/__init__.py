"""Proofs for analytic targets: Chebyshev interpolation on boxes."""
