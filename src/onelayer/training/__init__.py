"""Layers by gradient descent, from a target or from samples: `train`, the scikit-learn estimators, distillation."""
