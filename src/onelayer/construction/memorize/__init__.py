"""Any finite set of samples, stored in one layer."""
