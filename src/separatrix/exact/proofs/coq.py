"""Proof certificates as Coq developments, whose last theorem is the bound on P in terms of the network's definition.

A development is the static library `network.v` (the network, its reduction to the least firing counts, and the shape
lemma) followed by the certificate's numbers with a proof of every line. Coq decides all signs itself: exactly for
rational numbers, by the `interval` tactic for powers of n. This module only chooses which lemma is applied where.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.resources import files
from itertools import product
from typing import Any

from separatrix.core.errors import EngineRefusal

MARK = "certificate: "
"""Begins the line of the header that contains the certificate as JSON."""

MAX_BITS = 20_000
"""The most bits of the denominator 2^(d m): Coq computes powers of such numbers in binary arithmetic."""

MAX_PLAIN_BITS = 2000
"""The most bits for which powers are computed without the integers of the processor."""

MAX_WIDTH = 1000
"""The greatest d: a row of Pascal's triangle takes d^2/2 additions."""

MAX_ROOT_BITS = 1 << 14
"""The most bits of n^p for which the fraction n^(p/r) is given to Coq exactly."""

HEADER = """\
(* {subject}
   at every n = {unit} t from {first_n} on. Written by separatrix prove --coq, for Coq to verify.

   {parameters}

   The last theorem, separatrix_verdict, speaks of the network of section 1: attention on n tokens in real arithmetic,
   m random sign vectors, and the quotient of favourable and all choices of signs. All steps from there to the
   thresholds and the final comparison of integers are proved below. In this file, the columns of a token are those of
   the spike, of c and of the blocks, in this order, and the spike is the first token: another order permutes the sums.

   Print Assumptions, at the end, lists what Coq takes for granted: the axioms of its real numbers (three of them
   classical or about functions), and for softmax the primitive integers of the processor, with which the interval
   tactic computes. Nothing else may appear there.

   Not claimed: anything at other parameters, with another reader or threshold, or in floating-point arithmetic.

   {mark}{certificate}
*)
"""
DEFINITIONS = """
(** * 9. The certificate *)

Definition blocks : nat := {unit}.
Definition neurons : nat := {m}.
Definition a0 : R := {a0}.
Definition a1 : R := {a1}.
Definition b : R := {b}.
Definition c : R := {c}.
Definition tau : R := {tau}.
Definition score : R -> R := {score}.
Definition amplitude_in (label : bool) : R := if label then a1 else a0.
{rho}

Lemma blocks_eq : INR blocks = {unit}.
Proof. rewrite INR_IZR_INZ. reflexivity. Qed.

Lemma a0_nonneg : 0 <= a0. Proof. unfold a0. lra. Qed.
Lemma a1_nonneg : 0 <= a1. Proof. unfold a1. lra. Qed.
Lemma b_pos : 0 < b. Proof. unfold b. lra. Qed.
Lemma c_pos : 0 < c. Proof. unfold c. lra. Qed.

Ltac literals :=
  repeat match goal with
  | |- context [IZR (?x - 1)] => let y := eval compute in (x - 1)%Z in change (IZR (x - 1)) with (IZR y)
  | H : context [IZR (?x - 1)] |- _ => let y := eval compute in (x - 1)%Z in change (IZR (x - 1)) with (IZR y) in H
  end.
Ltac numbers :=
  cbv [soft_excess turning drift slope excess sigma mu sign soft exponent rho amplitude_in a0 a1 b c tau]; literals.
Ltac rational := numbers; lra.
(* A precision makes interval use big integers instead of the processor's floats: fewer axioms, and no slower. *)
Ltac enclose := numbers; first [interval with (i_prec 60) | interval with (i_prec 150) | interval with (i_prec 500)
  | interval with (i_prec 2000)].
Ltac exact_power :=
  first [lra | lia | rewrite !INR_IZR_INZ; cbn [Z.of_nat Pos.of_succ_nat Pos.succ]; numbers; lra
        | rewrite <- !mult_IZR, !pow_IZR; apply f_equal; vm_compute; reflexivity].
Ltac absurd_count := let H := fresh in intros H; exfalso; lia.
"""
SOFT_RHO = """\
Definition exponent (label row : bool) : R :=
  (if row then amplitude_in label + b + c else b + c) * (amplitude_in label + b + c - (b + c)) / {temperature}.
Definition rho (label row : bool) (x : R) : R := soft (exponent label row) {unit} x."""
CONSTANT_RHO = """\
Definition exponent (label row : bool) : R := 0.
Definition rho (label row : bool) (x : R) : R := ((amplitude_in label + b + c) / (b + c)) ^ {beta}."""

SOFT_LEMMAS = """
Lemma score_pos_here : forall z, 0 < z -> 0 < score z.
Proof. apply softmax_pos. Qed.

Lemma spike_rho : forall label t, (1 <= t)%nat ->
  spike_ratio blocks t (amplitude_in label) b c score = rho label true (INR t).
Proof.
  intros label t _. unfold spike_ratio, score. rewrite softmax_ratio by lra. rewrite blocks_eq. reflexivity.
Qed.

Lemma other_rho : forall label t, (1 <= t)%nat ->
  other_ratio blocks t (amplitude_in label) b c score = rho label false (INR t).
Proof.
  intros label t _. unfold other_ratio, score. rewrite softmax_ratio by lra. rewrite blocks_eq. reflexivity.
Qed.
"""
CONSTANT_LEMMAS = """
Lemma score_pos_here : forall z, 0 < z -> 0 < score z.
Proof. apply power_pos. Qed.

Lemma ln_n_pos : forall t, (1 <= t)%nat -> 0 < ln (INR (blocks * t)).
Proof. intros t Ht. apply ln_pos; unfold blocks; lia. Qed.

Lemma total_pos : forall label, 0 < amplitude_in label + b + c.
Proof.
  intros label. pose proof a0_nonneg. pose proof a1_nonneg. pose proof b_pos. pose proof c_pos.
  destruct label; unfold amplitude_in; lra.
Qed.

Lemma spike_rho : forall label t, (1 <= t)%nat ->
  spike_ratio blocks t (amplitude_in label) b c score = rho label true (INR t).
Proof.
  intros label t Ht. pose proof (total_pos label). pose proof b_pos. pose proof c_pos.
  apply power_ratio; try lra. apply ln_n_pos, Ht.
Qed.

Lemma other_rho : forall label t, (1 <= t)%nat ->
  other_ratio blocks t (amplitude_in label) b c score = rho label false (INR t).
Proof.
  intros label t Ht. pose proof (total_pos label). pose proof b_pos. pose proof c_pos.
  apply power_ratio; try lra. apply ln_n_pos, Ht.
Qed.
"""
CONCLUSION = """
Lemma lines_hold : forall label row y1 yd yk,
  steps_hold (row_excess blocks a0 a1 b c tau rho label row y1 yd yk) (Z.of_nat (blocks - 1)) {first}
    (fst (lines label row y1 yd yk)) (snd (lines label row y1 yd yk)).
Proof.
  intros label row y1 yd yk. unfold row_excess. rewrite blocks_eq.
  destruct label, row, y1, yd, yk;
  [{line_names}].
Qed.

Definition places : list Z := [{places}]%Z.

Lemma places_hold : forall label row y1 yd yk,
  forallb (fun step => existsb (Z.eqb (fst step)) places) (snd (lines label row y1 yd yk)) = true.
Proof. intros label row y1 yd yk. destruct label, row, y1, yd, yk; vm_compute; reflexivity. Qed.

(** The final comparison of integers, at each place where a threshold changes. *)
Lemma comparisons : (fun r => forallb (fun t =>
    good_{verdict} {top} {bottom} (denominator blocks neurons {power})
      (numerator neurons lines {power} r t) (numerator_of_both blocks neurons lines {power} r t)) ({first} :: places)%Z)
  (row blocks) = true.
Proof. vm_compute. reflexivity. Qed.

(** The arguments of probability: blocks, b, c, tau, score, a0, a1, neurons and t, as defined in section 1. *)
Theorem separatrix_verdict : forall t : nat, ({first} <= Z.of_nat t)%Z ->
  {statement}.
Proof.
  intros t Ht.
  destruct (at_every_t blocks neurons a0 a1 b c tau score ltac:(unfold blocks; lia) a0_nonneg a1_nonneg b_pos c_pos
              score_pos_here rho spike_rho other_rho lines {first} ltac:(lia) lines_hold places places_hold
              {power} {power_eq} (good_{verdict} {top} {bottom} (denominator blocks neurons {power})) comparisons t Ht)
    as [p [q [Hg [Hp Hq]]]].
  unfold blocks, neurons, a0, a1, b, c, tau, score in Hp, Hq.
  assert (Hd : (0 < denominator {unit} {m} {power})%Z) by (apply lt_IZR, denominator_pos; [lia | exact {power_eq}]).
  unfold good_{verdict}, blocks, neurons in Hg. {finish}
Qed.

Print Assumptions separatrix_verdict.
"""
SUBJECTS = {
    "distinguishes": "distinguishes D0 from D1 (P >= 1 - delta)",
    "blind": "is blind (P <= delta, and it fires on both with a probability below 1/2)",
    "saturated": "is saturated (P <= delta, and it fires on both with a probability of 1/2 or more)",
    "partial": "is partial (delta < P < 1 - delta)",
}
FINISH = {
    "distinguishes": "rewrite Hp. apply Z.leb_le in Hg. apply quotient_ge; lia.",
    "blind": (
        "rewrite Hp, Hq. apply andb_true_iff in Hg. destruct Hg as [Hg1 Hg2].\n"
        "  apply Z.leb_le in Hg1. apply Z.ltb_lt in Hg2. split; [apply quotient_le | apply quotient_lt]; lia."
    ),
    "saturated": (
        "rewrite Hp, Hq. apply andb_true_iff in Hg. destruct Hg as [Hg1 Hg2].\n"
        "  apply Z.leb_le in Hg1, Hg2. split; [apply quotient_le | apply quotient_ge]; lia."
    ),
    "partial": (
        "rewrite Hp. apply andb_true_iff in Hg. destruct Hg as [Hg1 Hg2].\n"
        "  apply Z.ltb_lt in Hg1, Hg2. split; [apply quotient_gt | apply quotient_lt]; lia."
    ),
}


def coq_development(certificate: dict[str, Any]) -> str:
    """Return the Coq development of a proof certificate, or raise an EngineRefusal.

    Its theorem is about the verdict that holds for ever, from the n on from which it does.
    """
    return _Development(certificate).text()


def embedded_certificate(text: str) -> str | None:
    """Return the JSON of the certificate in the header of a development, or None if there is none."""
    lines = (line.strip() for line in text.splitlines()[:40])
    return next((line.removeprefix(MARK) for line in lines if line.startswith(MARK)), None)


def theorem_of(text: str) -> str:
    """Return the statement of the last theorem of a development, in one line."""
    statement = text.rpartition("Theorem separatrix_verdict : ")[2].partition("\nProof.")[0]
    return " ".join(statement.split())


@dataclass(frozen=True)
class _Line:
    """The least firing counts of one label, row and sign triple, and the shape of its N."""

    label: int
    is_spike: bool
    signs: tuple[int, int, int]
    turn: int | None
    steps: list[tuple[int, int]]
    sigma: Fraction
    exponent: Fraction

    @property
    def is_affine(self) -> bool:
        """Whether N is an affine function of n."""
        return self.sigma == 0 or self.exponent in (0, 1)

    @cached_property
    def pieces(self) -> list[tuple[int, int | None, int]]:
        """First t, last t and least count of every range, cut after the turn."""
        starts = list(self.steps)
        if self.turn is not None and not self.is_affine:
            least = next(value for t, value in reversed(self.steps) if t <= self.turn)
            starts = sorted({self.turn + 1: least, **dict(starts)}.items())
        ends: list[int | None] = [t - 1 for t, _ in starts[1:]]
        return [(t, end, least) for (t, least), end in zip(starts, [*ends, None], strict=True)]

    @property
    def arguments(self) -> str:
        """Label, row and signs in the order of the development."""
        y_1, y_k, y_d = self.signs
        return " ".join("true" if flag else "false" for flag in (self.label, self.is_spike, y_1 > 0, y_d > 0, y_k > 0))

    @property
    def name(self) -> str:
        """The name of the lemma."""
        return "line_" + "".join("t" if word == "true" else "f" for word in self.arguments.split())


class _Development:
    """The text of one development."""

    def __init__(self, certificate: dict[str, Any]) -> None:
        self.certificate, self.parameters = certificate, certificate["parameters"]
        self.mechanism = certificate["mechanism"]
        self.is_softmax = self.mechanism["name"] == "softmax"
        if self.mechanism["name"] == "taylor" or self.parameters.get("form") != "ones":
            raise EngineRefusal("Coq verifies spike with form=ones and softmax, linear or power; use the certificate")
        self.unit = self.parameters["d"] - 2
        self.delta = Fraction(certificate["delta"])
        if certificate["eventually"] is None:
            raise EngineRefusal("no verdict holds for ever, so there is no theorem for Coq")
        self.verdict: str = certificate["eventually"]["verdict"]
        self.first_n: int = certificate["eventually"]["from"]
        self.first = self.first_n // self.unit
        if self.parameters["d"] > MAX_WIDTH:
            raise EngineRefusal(
                f"Coq verifies d up to {MAX_WIDTH:,} in reasonable time; take a smaller d, or use the certificate alone"
            )
        bits = self.parameters["d"] * self.parameters["m"]
        if bits > MAX_BITS:
            raise EngineRefusal(
                f"the final inequality has numbers of d m = {bits:,} bits, and Coq compares at most {MAX_BITS:,} in "
                "reasonable time; take a smaller m or d, or use the certificate alone"
            )
        self.lines = list(self._lines())

    def _lines(self) -> Iterator[_Line]:
        amplitudes = [Fraction(self.parameters[name]) for name in ("a0", "a1")]
        b, c, tau = (Fraction(self.parameters[name]) for name in ("b", "c", "tau"))
        by_key = {(line["label"], line["row"], tuple(line["signs"])): line for line in self.certificate["lines"]}
        # `destruct` in Coq meets the cases in this order: true first.
        for label, is_spike, y_1, y_d, y_k in product((1, 0), (True, False), (1, -1), (1, -1), (1, -1)):
            line, a = by_key[label, "spike" if is_spike else "rest", (y_1, y_k, y_d)], amplitudes[label]
            exponent = Fraction(0)
            if self.is_softmax:
                exponent = (a * is_spike + b + c) * a / Fraction(self.mechanism["temperature"])
            turn = next((turn for turn in line["turns"] if turn >= self.first), None)  # there is one at most
            sigma = a * y_1 + b * y_k + c * y_d - tau
            yield _Line(label, is_spike, (y_1, y_k, y_d), turn, self._steps(line["steps"]), sigma, exponent)

    def _steps(self, steps: list[list[int]]) -> list[tuple[int, int]]:
        """Return the steps from the first t of the theorem on."""
        before = [least for t, least in steps if t <= self.first]
        return [(self.first, before[-1]), *((t, least) for t, least in steps if t > self.first)]

    def text(self) -> str:
        """Return the whole development."""
        library = files("separatrix.exact.proofs").joinpath("network.v").read_text(encoding="utf-8")
        return "\n".join(
            [
                self._header(),
                library,
                self._definitions(),
                self._data(),
                *map(self._lemma, self.lines),
                self._conclusion(),
            ]
        )

    def _header(self) -> str:
        settings = {**self.parameters, **{name: value for name, value in self.mechanism.items() if name != "name"}}
        return HEADER.format(
            subject=f"{self.mechanism['name'].capitalize()} on spike {SUBJECTS[self.verdict]}",
            unit=self.unit,
            first_n=self.first_n,
            parameters=" ".join(f"{name}={value}" for name, value in sorted({**settings, "delta": self.delta}.items())),
            mark=MARK,
            certificate=json.dumps(self.certificate, sort_keys=True, separators=(",", ":"), ensure_ascii=True),
        )

    def _score(self) -> str:
        if self.is_softmax:
            return f"softmax {_real(Fraction(self.mechanism['temperature']))}"
        return f"power {self._beta()}"

    def _beta(self) -> int:
        beta = Fraction(self.mechanism.get("beta", "1"))
        if beta.denominator != 1 or beta > 1000:
            raise EngineRefusal("the Coq development covers powers with an integer beta of at most 1000")
        return int(beta)

    def _definitions(self) -> str:
        rho = (
            SOFT_RHO.format(temperature=_real(Fraction(self.mechanism["temperature"])), unit=self.unit)
            if self.is_softmax
            else CONSTANT_RHO.format(beta=self._beta())
        )
        values = {name: _real(Fraction(self.parameters[name])) for name in ("a0", "a1", "b", "c", "tau")}
        text = DEFINITIONS.format(unit=self.unit, m=self.parameters["m"], score=self._score(), rho=rho, **values)
        return text + (SOFT_LEMMAS if self.is_softmax else CONSTANT_LEMMAS)

    def _data(self) -> str:
        cases = [
            f"  | {', '.join(line.arguments.split())} => ({line.pieces[0][2]}, {_pairs(line)})" for line in self.lines
        ]
        return (
            "(** For D1 (true) or D0, the spike's row (true) or another, and y1, yd, yk: the least count at first,\n"
            f"    and the places where it changes. {self.unit} means that no count fires. *)\n"
            "Definition lines (label row y1 yd yk : bool) : line :=\n  match label, row, y1, yd, yk with\n"
            + "\n".join(cases)
            + "\n  end%Z.\n"
        )

    def _lemma(self, line: _Line) -> str:
        steps = "[" + "; ".join(f"({t}, {least})" for t, _, least in line.pieces[1:]) + "]"
        label, row, y_1, y_d, y_k = line.arguments.split()
        proofs = [self._piece(line, *piece) for piece in line.pieces]
        body = "\n".join(f"  split; [{proof}|]." for proof in proofs[:-1])
        return (
            f"Lemma {line.name} : steps_hold\n"
            f"  (fun plus x => excess (amplitude_in {label}) b c tau (rho {label} {row} x)\n"
            f"    {self.unit} {y_1} {y_k} {y_d} plus x)\n"
            f"  {self.unit - 1} {self.first} {line.pieces[0][2]} {steps}%Z.\n"
            f"Proof.\n{body}{chr(10) if body else ''}  {proofs[-1]}.\nQed.\n"
        )

    def _piece(self, line: _Line, first: int, last: int | None, least: int) -> str:
        """Return the proof of the least count on one range."""
        return self._affine_piece(line, least) if line.is_affine else self._soft_piece(line, first, last, least)

    def _affine_piece(self, line: _Line, least: int) -> str:
        label, row = line.arguments.split()[:2]
        equation = ""
        if not self.is_softmax:
            r = Fraction(self.parameters["b"]) + Fraction(self.parameters["c"])
            a = Fraction(self.parameters["a1" if line.label else "a0"])
            value = _real(((a + r) / r) ** self._beta())
            equation = f"replace (rho {label} {row} x) with {value} by (numbers; field); "
        elif line.exponent == 0:
            zero = f"replace (exponent {label} {row}) with 0 by (numbers; field)"
            equation = f"unfold rho; {zero}; rewrite soft_zero; "
        elif line.exponent == 1:
            one = f"replace (exponent {label} {row}) with 1 by (numbers; field)"
            equation = f"unfold rho; {one}; rewrite soft_one by lra; "
        fires, silent = (f"intros _ x Hx; cbv beta; {equation}rational",) * 2
        return self._both(least, fires, silent)

    def _both(self, least: int, fires: str, silent: str) -> str:
        """Return a proof of `least` firing and of one less not firing, where these counts exist."""
        fires = fires if least < self.unit else "absurd_count"
        return f"split; [{fires} | {silent if least > 0 else 'absurd_count'}]"

    def _soft_piece(self, line: _Line, first: int, last: int | None, least: int) -> str:
        label, row, y_1, y_d, y_k = line.arguments.split()
        lemma = (
            f"(amplitude_in {label}) b c tau (exponent {label} {row}) {self.unit} {y_1} {y_k} {y_d} {self.unit - 1}%Z"
        )
        # The sign of the slope of N/t: at infinity that of sigma (s-1), the opposite before a turn.
        rises = (line.sigma * (line.exponent - 1) > 0) is (line.turn is None or first > line.turn)
        at_first, start = self._sign_at(line, first), "rational | lra | reflexivity"
        if last is not None:
            at_last = self._sign_at(line, last)
            side = f"{'left' if rises else 'right'}; split; [{at_first} | {at_last}]"
            both = f"intros _; split; [{at_first} | {at_last}]"
            fires, silent = (both if least < self.unit else "absurd_count"), (both if least > 0 else "absurd_count")
            return f"apply (soft_piece {lemma}); [{start} | {side} | {fires} | {silent}]"
        here, limit = f"intros _; {at_first}", "intros _; split; rational"
        fires, silent = (here, limit) if rises else (limit, here)
        fires, silent = (fires if least < self.unit else "absurd_count"), (silent if least > 0 else "absurd_count")
        name = "soft_tail_rises" if rises else "soft_tail_falls"
        return f"apply ({name} {lemma}); [{start} | rational | {at_first} | {fires} | {silent}]"

    def _sign_at(self, line: _Line, t: int) -> str:
        """Return the tactic for the sign of N or of its slope at t: exact if n^s is rational, else by enclosure."""
        power = _rational_power(self.unit * t, line.exponent)
        if power is None:
            return "enclose"
        label, row = line.arguments.split()[:2]
        p, r = line.exponent.numerator, line.exponent.denominator
        return (
            "cbv [soft_excess slope excess]; literals; "
            f"rewrite (soft_rational (exponent {label} {row}) {self.unit} {t} {power} {p} {r}) by exact_power; rational"
        )

    def _conclusion(self) -> str:
        places = sorted({t for line in self.lines for t, _, _ in line.pieces[1:]})
        top, bottom = self.delta.numerator, self.delta.denominator
        high, low, p, both = f"{bottom - top} / {bottom}", f"{top} / {bottom}", *self._literal_probabilities()
        statements = {
            "distinguishes": f"{high} <= {p}",
            "blind": f"{p} <= {low} /\\\n  {both} < 1 / 2",
            "saturated": f"{p} <= {low} /\\\n  1 / 2 <= {both}",
            "partial": f"{low} < {p} < {high}",
        }
        is_long = self.parameters["d"] * self.parameters["m"] > MAX_PLAIN_BITS
        return CONCLUSION.format(
            first=self.first,
            unit=self.unit,
            m=self.parameters["m"],
            verdict=self.verdict,
            power="fast_power" if is_long else "Z.pow",
            power_eq="fast_power_eq" if is_long else "(fun x e => eq_refl)",
            top=top,
            bottom=bottom,
            line_names=" | ".join(f"exact {line.name}" for line in self.lines),
            places="; ".join(map(str, places)),
            statement=statements[self.verdict],
            finish=FINISH[self.verdict],
        )

    def _literal_probabilities(self) -> tuple[str, str]:
        """Return P(t) and P(fires on both) with the numbers of the certificate in place of names."""
        values = {name: _real(Fraction(self.parameters[name])) for name in ("a0", "a1", "b", "c", "tau")}
        arguments = (
            f"{self.unit} {values['b']} {values['c']} {values['tau']} ({self._score()}) "
            f"{values['a0']} {values['a1']} {self.parameters['m']} t"
        )
        return f"probability {arguments}", f"probability_of_both {arguments}"


def _real(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"({_ratio(value)})"


def _ratio(value: Fraction) -> str:
    return f"{value.numerator} / {value.denominator}"


def _pairs(line: _Line) -> str:
    return "[" + "; ".join(f"({t}, {least})" for t, _, least in line.pieces[1:]) + "]"


def _rational_power(n: int, exponent: Fraction) -> int | None:
    """Return n ** exponent if it is an integer of moderate length: n is then a perfect power of the right degree."""
    degree = exponent.denominator
    if exponent.numerator * n.bit_length() > MAX_ROOT_BITS or degree >= n.bit_length():
        return None
    low, high = 1, 1 << (n.bit_length() // degree + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= n else (low, middle - 1)
    return int(low**exponent.numerator) if low**degree == n else None
