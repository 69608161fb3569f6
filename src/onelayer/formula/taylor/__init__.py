"""Taylor models of third order on many boxes at once: formulas, Transformers, kinks."""
