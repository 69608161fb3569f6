"""Layers for noisy samples, as scikit-learn estimators."""
