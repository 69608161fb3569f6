"""What one pass of one layer cannot do without: heads, bits and ReLUs, each with its proof.

**One look.** Some tokens of a sequence are *free*: each is any of `values` symbols. The row that answers has a fixed token at
a fixed position, and the other tokens, the *question*, say which of the free symbols is the right answer; every one of them
can be asked for.

    induction     k_1 v_1 … k_m v_m a: one k_r is a, the others are not, no v is. The last row answers v_r: m = (n − 1)/2 free
                  tokens, V − 1 symbols
    pointers      row i has token j. Token j says r, and the row answers token r = g(g(g(i))): n − 2 free tokens, n symbols

*Heads.* Let every head attend to the one token of largest score (ties go to the earlier position); scores, values, widths and
what follows are any functions whatsoever. Then there are at least free·(1 − 1/values) heads.

*Proof.* The query is fixed, so the score of a free token depends on it and its position alone. Let the *leader* of a head be
the free token of largest score among the free ones: it does not depend on the question. Ask for token j and fix all others. If
there were two symbols of token j for which no head picks it, all heads would pick and read the same for both, and one answer
would be wrong. So for all symbols but at most one some head picks j, and j is its leader. Draw the free tokens at random: on
average at least free·(1 − 1/values) of them lead, and each head has one leader. ∎

*Bits.* Let a head be computed from two parts, the free tokens and the others: of each part the largest score, the sum of
weights and the weighted sum of values, d_v + 2 numbers of p bits, as FlashAttention does. Then H(d_v + 2)p ≥ free·log2(values)
for H heads, whatever scores, embeddings and feed-forward networks there are.

*Proof.* The query is fixed, so the parts of the free tokens do not depend on the question, and the answer is a function of
them and of the question. Asking for every token in turn recovers all of them: different choices have different parts. There
are values^free choices, and at most 2^(H(d_v + 2)p) parts. ∎ (Sanford, Hsu and Telgarsky 2024 argue in this way, arXiv
2408.14332.)

**x² by ReLUs.** A layer on one token attends to that token: its attention is affine, and the answer is piecewise linear in x
with at most one piece more than there are ReLUs. On a piece of length h a line is off from x² by h²/8 somewhere, and among P
pieces of [0, 1] one has h ≥ 1/P. So an error of ε takes P ≥ 1/√(8ε). Equal pieces, the chords lowered by half the largest gap,
attain it.
"""

import math
from fractions import Fraction

from ...common.checks import require_whole


def heads_needed(free: int, values: int) -> int:
    """The least number of heads that each pick one token."""
    return math.ceil(free * (1 - Fraction(1, values)))


def bits_needed(free: int, values: int) -> int:
    """The least number of bits in the partial results of all heads, H(d_v + 2)p."""
    return (values**free - 1).bit_length()


def induction_limit(heads: int, d_v: int, p: int, vocabulary: int) -> int:
    """The first length n of sequences on which no layer with these heads does induction, by counting bits."""
    require_whole("vocabulary", vocabulary, 3, 2**31)
    bits = heads * (d_v + 2) * p
    free = math.floor(bits / math.log2(vocabulary - 1)) - 1  # near the answer: settle it in whole numbers
    while bits_needed(free, vocabulary - 1) <= bits:
        free += 1
    return 2 * free + 1


def relus_needed(tolerance: float) -> int:
    """The least number of ReLUs for x² on [0, 1] within the tolerance, in one pass over one token."""
    eighth = 1 / (8 * Fraction(tolerance))
    pieces = math.isqrt(math.floor(eighth))
    return max(0, pieces + (Fraction(pieces) ** 2 < eighth) - 1)
