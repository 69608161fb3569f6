"""What a user would pick instead of a constructed layer: one module per peer.

Every `fit(target, parameters, seconds, seed)` returns a `Fitted`: a function, how much it stores, how long it took.
"""
