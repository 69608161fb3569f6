"""Eq. (1)–(10) of the paper in plain NumPy: forward passes, hand-derived backward passes, optimisers.

Independent of torch. It is slow, explicit and meant to be read; the tests use it as the oracle for the model.

    perceptron    Eq. (1), (9), (10)   layers and backpropagation through L of them
    losses        Eq. (2), (3)         risk, cross-entropy, squared loss
    optimisers    Eq. (4)              gradient descent, mini-batches, momentum, Adam
    attention     Eq. (5)–(8)          attention, multi-head attention, positional codes
    sublayers                          feed-forward network, LayerNorm, dropout
    transformer                        the whole single-layer Transformer, forward and backward
"""
