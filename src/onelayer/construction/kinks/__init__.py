"""Formulas with abs, max and min: the kinks get heads of their own."""
