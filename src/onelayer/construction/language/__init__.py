"""Text: a bigram or trigram model as one causal layer, with a proved total variation for every context."""

from .construction import language as language
