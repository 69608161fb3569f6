"""The paper's construction: one value per cell, a bound known before anything is built."""
