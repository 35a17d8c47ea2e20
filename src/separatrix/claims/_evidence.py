"""How the statements about growing n are known: proved, extrapolated or sampled, and why they are not proved.

S1, U1 and U2 are theorems of docs/proofs.md, L1 to L4 those of docs/theory.md 3.8. "Certified" means that the check
makes certificates and the independent checker verifies them.
"""

from __future__ import annotations

COMPUTED = "computed at the points that are listed"
CLOSED = "proved: the closed form of theory {} holds for every n; it is compared with computed values"
SPIKE_ONLY = "S1, U1 and U2 are proved for spike with form=ones and fixed weights only"

EVIDENCE = {
    "width": "proved and certified (U1): m does not depend on n, for every n >= 10^4; the least m is computed",
    "any-n": "sampled: the work is counted at some n; no bound for every n is proved",
    "theorem": "proved and certified (U1, U2) at every setting, for all larger n and d; computed at powers of ten",
    "theorem-from-n": "proved (theory 3.4), and certified (U1, U2) from the stated n on at every setting",
    "hypotheses-needed": "proved and certified (S1): each failure remains for every larger n",
    "boundary-ones": "proved (U1, U2), for every distance from the limit; certified for 0.1, 0.01 and 0.001; "
    "computed: that it is lower at finite n",
    "spike-share": "sampled: 'about 0.1' is measured at some n, and no rate is proved",
    "boundary-identity": f"extrapolated in 1/log n: {SPIKE_ONLY}",
    "identity-separates": f"sampled at some n: {SPIKE_ONLY}",
    "hoeffding": "proved and certified (S1) at some widths, for every larger n; computed at all widths and one n",
    "firing-probability": "proved and certified (S1) for every larger n",
    "tuned-threshold": "proved (theory 3.7) wherever the margin is positive: certified (L1) for every n; "
    "the best tau is computed at some n",
    "margin-softmax": "proved and certified (L2) for every n >= 1000",
    "margin-linear": "proved and certified (L1) for every n >= 1000",
    "noise": "proved: AUC = Phi(margin/(sd sqrt(2))), with the margin certified (L1, L2) for every n >= 1000",
    "margin-laws": "proved and certified (L1 to L4)",
    "number-formats": "sampled: the first n of each format is exact; rounding at every larger n is not proved",
    "critical-degree": "sampled at some n: the degree grows with n, and S1 and U2 are for one mechanism",
    "taylor-order": "proved and certified (U2) from 100 (R/r)^order on, at each order; the first n is computed",
    "one-row-and-all-rows": "proved (theory 3.11), with constants in balls; no certificate: the checker verifies "
    "laws of the margin only",
    "weights-with-n": "proved (theory 3.12), with the bound in balls; no certificate: the checker knows X = 11ᵀ only",
    "weights-with-amplitude": "proved (theory 3.12): f = 1; P is computed at some n",
    "weights-robust": "proved (theory 3.12): the alternative; sampled: P above 0.9 at n up to 1e30, as S1 is for 11ᵀ",
    "weights-unnormalised": CLOSED.format("3.12"),
    "weights-scaled": "proved and certified (S1) at each g that is listed, for every larger n",
    "plain-softmax-peak": "proved (theory 4) for every n; computed at some n",
    "plain-linear-peak": "proved (theory 4) for every n; computed at some n",
    "plain-linear-reach": "proved: computed at every n up to 2048, bounded by Hoeffding's inequality beyond; in "
    "float64, without a certificate",
    "boundary-cross": f"extrapolated in 1/log n: {SPIKE_ONLY}",
    "injectivity": "proved (theory 6.1) for every n; computed at some n",
    "injectivity-softmax": CLOSED.format("6.1"),
    "duplication-normalised": "proved (theory 6.2) for every n; computed at some n",
    "routing-degree": "proved (theory 6.3) for every n; computed at some n",
    "parity-degree": "proved (theory 6.3) for every n; computed at some n",
    "parity-softmax": CLOSED.format("6.3"),
    "feature-rank": "proved (theory 6.4) for every n; computed at one n",
    "dispersion": CLOSED.format("6.5"),
    "dispersion-blind": "proved: the weight of theory 6.5 falls with n; computed on both sides of the stated n",
    "dispersion-repaired": "sampled: P is computed at some n; theory 6.5 has the weight for every n, and no proof of P",
    "critical-scaling": f"extrapolated in 1/log n: {SPIKE_ONLY}; the crossings at some n are certified",
    "sparse-averaging": CLOSED.format("6.7"),
    "single-location": CLOSED.format("6.8"),
    "state-rank": "proved (theory 6.10) for every n; computed at some n",
    "majority": CLOSED.format("6.11"),
    "which-of-k": f"extrapolated in 1/log n: {SPIKE_ONLY}; P at some n is certified",
    "resolution": CLOSED.format("7.4"),
    "rough": "sampled: signs and noise are drawn; S1, U1 and U2 need equal blocks without noise",
}
"""By claim; a claim that is not listed asserts nothing about growing n."""
