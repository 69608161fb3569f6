"""Training by gradient descent: what to do (`recipe`), on what (`material`), what happened (`history`), and where it stood."""
