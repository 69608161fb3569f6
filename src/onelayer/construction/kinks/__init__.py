"""Formulas with abs, max and min: the kinks get their own heads."""
