"""Max-heads: a softmax average of values with scores in proportion to them is near the largest, and the rest is linear."""

from fractions import Fraction

from scipy.special import lambertw

from ....formula.tree import Call, Negation, Node, Number, Product, Quotient, Sum, Variable, postorder, variables
from .formula import number
from .heads import Kept
from .proof import CoqClaim
from .text import listed, polynomial

ROOM = 1 + 1e-9  # the constant is a little above the sharp one


def piecewise_affine(root: Node) -> bool:
    """Whether only abs, max, min, sums and factors that are numbers occur."""
    for tree in postorder((root,)):
        match tree:
            case Number() | Variable() | Sum() | Negation() | Call("abs" | "max" | "min"):
                continue
            case Product(factors) if sum(bool(variables(factor)) for factor in factors) <= 1:
                continue
            case Quotient(_, divisor) if not variables(divisor):
                continue
        return False
    return True


def sharpness(kept: Kept) -> Fraction | None:
    """β > 0 if all scores are β times the values, up to one constant for all; 0 for a head of one token; else None."""
    if not kept.others:
        return Fraction(0)
    first = kept.value(kept.others[0])
    if not first:
        return None
    monomial = next(iter(first))
    beta = kept.score(kept.others[0]).get(monomial, Fraction(0)) / first[monomial]
    scaled = ({m: beta * c for m, c in kept.value(t).items()} == kept.score(t) for t in kept.others)
    return beta if beta > 0 and all(scaled) else None


def kinks_only(claim: CoqClaim) -> bool:
    """Whether the target is piecewise affine, with a kink, and all heads are max-heads or affine."""
    kink = any(isinstance(tree, Call) for tree in postorder((claim.target,)))
    return kink and piecewise_affine(claim.target) and all(sharpness(one) is not None for one in claim.kept)


def _largest(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"(Rmax {words[0]} {_largest(words[1:])})"


def _top(h: int, kept: Kept, beta: Fraction) -> str:
    """Lemma: 0 ≤ max − g ≤ c."""
    own = " ".join(f"x{j + 1}" for j in sorted(kept.variables))
    n = len(kept.others)
    c = number(Fraction(ROOM * float(lambertw(n / 2.718281828459045).real) / float(beta)).limit_denominator(10**15))
    values = [polynomial(kept.head.values[t]) for t in (kept.base, *kept.others)]
    scores = [polynomial(kept.score(t)) for t in kept.others]
    steps = listed([polynomial(kept.value(t)) for t in kept.others])
    b = number(beta)
    return f"""Definition m{h} ({own} : R) : R := {_largest(values)}.
Lemma top_{h} {own} : 0 <= m{h} {own} - g{h} {own} <= {c}.
Proof.
  pose (l := {listed(values)} : vec).
  assert (E : g{h} {own} = attend (map (Rmult {b}) l) l).
  {{ transitivity (attend (0 :: {listed(scores)}) l).
    - unfold l. rewrite (gate _ _ _ {steps}); [unfold g{h}; cbn [map dot sum]; lra | reflexivity | entries].
    - rewrite <- (attend_shift ({b} * {values[0]})). unfold l. apply attend_eq; [entries | reflexivity]. }}
  rewrite E. apply softmax_max; [lra | | | unfold l; simpl; interval with (i_prec 60)].
  - unfold m{h}, l. cases; simpl; tauto.
  - unfold m{h}, l. intros y Hy. simpl in Hy. cases; intuition (subst; lra).
Qed.
"""


def kink_ending(claim: CoqClaim) -> str:
    """The theorem: what is left after the lemmas is linear in every case."""
    sharp = [(h + 1, one, beta) for h, one in enumerate(claim.kept) if (beta := sharpness(one))]
    affine = [h + 1 for h, one in enumerate(claim.kept) if not one.others]
    lines = [
        "(** ** Max-heads *)\n",
        *(_top(*given) for given in sharp),
        claim.statement,
        "Proof.",
        "  intros. rewrite reduced.",
    ]
    lines += claim.heads_known
    for h, one, _ in sharp:
        own = " ".join(f"x{j + 1}" for j in sorted(one.variables))
        lines.append(f"  pose proof (top_{h} {own}). set (a{h} := g{h} {own}) in *. clearbody a{h}.")
    names = (
        [f"m{h}" for h, _, _ in sharp] + [f"g{h}" for h in affine] + [f"u{j + 1}" for j in range(claim.exact.dimension)]
    )
    lines.append(f"  apply Rabs_le. unfold f, {', '.join(names)} in *.")
    for h in range(len(claim.kept)):
        lines.append(f"  set (h{h + 1} := H{h + 1} {claim.xs}) in *. clearbody h{h + 1}.")
    lines.append("  cases; lra.\nQed.")
    return "\n".join(lines) + "\n"


SOFTMAX = r"""
(** ** The softmax average of values against the largest of them *)

Lemma t_exp t : t * exp (- t) <= exp (-1).
Proof.
  pose proof (exp_ineq1_le (t - 1)). pose proof (exp_pos (- t)).
  replace (exp (-1)) with (exp (t - 1) * exp (- t)) by (rewrite <- exp_plus; f_equal; lra).
  apply Rmult_le_compat_r; lra.
Qed.

(* One token: K is what a token at the worst distance below M - c adds. *)
Lemma term b c M x : 0 < b -> (M - c - x) * exp (b * x) <= exp (b * M) * (exp (- (b * c) - 1) / b).
Proof.
  intros Hb. pose proof (t_exp (b * (M - c - x))). pose proof (exp_pos (b * (M - c))).
  assert (E1 : exp (b * x) = exp (b * (M - c)) * exp (- (b * (M - c - x)))) by (rewrite <- exp_plus; f_equal; lra).
  assert (E2 : exp (b * M) * (exp (- (b * c) - 1) / b) = exp (b * (M - c)) * exp (-1) / b).
  { unfold Rdiv. rewrite <- Rmult_assoc, <- !exp_plus. do 2 f_equal. lra. }
  rewrite E1, E2. apply Rmult_le_reg_l with b; [easy|].
  replace (b * ((M - c - x) * (exp (b * (M - c)) * exp (- (b * (M - c - x))))))
    with (exp (b * (M - c)) * ((b * (M - c - x)) * exp (- (b * (M - c - x))))) by ring.
  replace (b * (exp (b * (M - c)) * exp (-1) / b)) with (exp (b * (M - c)) * exp (-1)) by (field; lra).
  apply Rmult_le_compat_l; lra.
Qed.

Lemma softmax_max b c M l : 0 < b -> In M l -> (forall x, In x l -> x <= M) ->
  INR (length l) - 1 <= b * c * exp (b * c + 1) -> 0 <= M - attend (map (Rmult b) l) l <= c.
Proof.
  intros Hb Hin Hle Hc. set (K := exp (b * M) * (exp (- (b * c) - 1) / b)).
  set (Z := fun l => sum (map exp (map (Rmult b) l))). set (N := fun l => dot (map exp (map (Rmult b) l)) l).
  assert (Hn : forall x (l : vec), INR (length (x :: l)) = INR (length l) + 1) by (intros; cbn [length]; apply S_INR).
  assert (All : forall l, (M - c) * Z l - N l <= INR (length l) * K).
  { clear Hin Hle Hc. induction l0 as [|x l0 IH]; [unfold Z, N; simpl; lra|]. rewrite Hn. unfold Z, N in *. simpl.
    pose proof (term b c M x Hb). fold K in H. lra. }
  assert (One : forall l, In M l -> (M - c) * Z l - N l <= (INR (length l) - 1) * K - c * exp (b * M)).
  { clear Hin Hle Hc. induction l0 as [|x l0 IH]; [easy|]. rewrite Hn. intros [->|Hin].
    - pose proof (All l0). unfold Z, N in *. simpl. lra.
    - specialize (IH Hin). pose proof (term b c M x Hb). fold K in H. unfold Z, N in *. simpl. lra. }
  assert (Low : forall l, (forall x, In x l -> x <= M) -> N l <= M * Z l).
  { clear Hin Hle Hc. induction l0 as [|x l0 IH]; intros H; [unfold N, Z; simpl; lra|].
    pose proof (H x (or_introl eq_refl)). pose proof (exp_pos (b * x)). pose proof (IH (fun y Hy => H y (or_intror Hy))).
    assert (exp (b * x) * x <= exp (b * x) * M) by (apply Rmult_le_compat_l; lra). unfold N, Z in *. simpl. lra. }
  assert (HZ : 0 < Z l).
  { destruct l as [|x l0]; [easy|]. unfold Z. simpl. pose proof (exp_pos (b * x)).
    pose proof (sum_exp_pos (map (Rmult b) l0)). lra. }
  assert (Hk : (INR (length l) - 1) * K <= c * exp (b * M)).
  { pose proof (exp_pos (b * M)). pose proof (exp_pos (- (b * c) - 1)). pose proof (exp_pos (b * c + 1)).
    assert (0 < K) by (unfold K; apply Rmult_lt_0_compat; [easy|]; apply Rdiv_lt_0_compat; lra).
    replace (c * exp (b * M)) with (b * c * exp (b * c + 1) * K); [apply Rmult_le_compat_r; lra|].
    unfold K. replace (- (b * c) - 1) with (- (b * c + 1)) by lra. rewrite exp_Ropp. field. split; lra. }
  pose proof (One l Hin). pose proof (Low l Hle). unfold attend. change (dot _ _ / sum _) with (N l / Z l).
  assert (A : M - N l / Z l = (M * Z l - N l) / Z l) by (field; lra). rewrite A.
  split; apply Rmult_le_reg_r with (Z l); try easy;
    replace ((M * Z l - N l) / Z l * Z l) with (M * Z l - N l) by (field; lra); lra.
Qed.

Ltac plain u := lazymatch u with context [Rle_dec] => fail | context [Rcase_abs] => fail | _ => idtac end.
Ltac cases := unfold Rmax, Rmin, Rabs in *; repeat match goal with
  | |- context [Rle_dec ?u ?v] => plain u; plain v; destruct (Rle_dec u v)
  | |- context [Rcase_abs ?u] => plain u; destruct (Rcase_abs u)
  | H : context [Rle_dec ?u ?v] |- _ => plain u; plain v; destruct (Rle_dec u v)
  | H : context [Rcase_abs ?u] |- _ => plain u; destruct (Rcase_abs u)
  end.
"""
