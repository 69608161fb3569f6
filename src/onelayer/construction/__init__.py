"""From a target to a layer without descent: representative, solved and polished values, kinks, stored samples, the gallery."""
