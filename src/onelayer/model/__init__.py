"""The single-layer Transformer, Eq. (5)–(8), and its NumPy reference; it does not know where its weights come from."""
