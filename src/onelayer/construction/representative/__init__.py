"""The paper's construction: one value per cell, a bound that is known before anything is built."""
