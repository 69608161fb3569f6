"""Proofs for everything else: branch and bound with Taylor models."""
