"""Taylor models of third order on many boxes at once, of formulas and their kinks."""
