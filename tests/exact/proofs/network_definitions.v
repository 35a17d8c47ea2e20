(** The sum of f(0), ..., f(n-1), and the number of list entries with a property. *)
Fixpoint Sum (n : nat) (f : nat -> R) : R :=
  match n with O => 0 | S n' => Sum n' f + f n' end.

Fixpoint count {A : Type} (p : A -> bool) (l : list A) : Z :=
  match l with [] => 0%Z | x :: l' => ((if p x then 1 else 0) + count p l')%Z end.

Definition sign (y : bool) : R := if y then 1 else -1.
Definition relu (x : R) : R := Rmax x 0.

(** All sign vectors of a length, and all lists of m of them. *)
Fixpoint vectors (d : nat) : list (list bool) :=
  match d with
  | O => [[]]
  | S d' => map (cons true) (vectors d') ++ map (cons false) (vectors d')
  end.

Fixpoint families (d m : nat) : list (list (list bool)) :=
  match m with
  | O => [[]]
  | S m' => flat_map (fun y => map (cons y) (families d m')) (vectors d)
  end.

Section Network.

(** k = d-2 blocks of t tokens each, n = k t; the score of a logit is what the mechanism weighs a key by. *)
Variable k : nat.
Variables b c tau : R.
Variable score : R -> R.

(** The unit of all amplitudes, sqrt(log n). *)
Definition unit (t : nat) : R := sqrt (ln (INR (k * t))).

(** The matrix A of tokens, whose spike is a: row i < n, columns 0 (spike), 1 (shared) and 2, ..., k+1 (blocks). *)
Definition entry (t : nat) (a : R) (i column : nat) : R :=
  unit t * match column with
           | O => if (i =? 0)%nat then a else 0
           | S O => c
           | S (S block) => if (i / t =? block)%nat then b else 0
           end.

Definition row_sum (t : nat) (a : R) (i : nat) : R := Sum (S (S k)) (entry t a i).

(** Row j of A times the matrix of ones times row i of A. *)
Definition logit (t : nat) (a : R) (j i : nat) : R := row_sum t a j * row_sum t a i.

(** The weight of key i for query j, and row j of the output of attention. *)
Definition weight (t : nat) (a : R) (j i : nat) : R :=
  score (logit t a j i) / Sum (k * t) (fun i' => score (logit t a j i')).

Definition output (t : nat) (a : R) (j column : nat) : R :=
  Sum (k * t) (fun i => weight t a j i * entry t a i column).

(** The inner product of row j of the output with a sign vector. *)
Definition activation (t : nat) (a : R) (y : list bool) (j : nat) : R :=
  Sum (S (S k)) (fun column => output t a j column * sign (nth column y false)).

(** The network with the sign vectors ys. *)
Definition network (t : nat) (a : R) (ys : list (list bool)) : R :=
  relu (Sum (k * t) (fun j =>
    relu (Sum (length ys) (fun i => relu (activation t a (nth i ys []) j - tau * unit t))))).

Definition fires (t : nat) (a : R) (ys : list (list bool)) : bool :=
  if Rlt_dec 0 (network t a ys) then true else false.

(** The network tells D0 from D1 if it fires on D1 and not on D0, with the same signs. *)
Definition probability (a0 a1 : R) (m t : nat) : R :=
  IZR (count (fun ys => negb (fires t a0 ys) && fires t a1 ys) (families (S (S k)) m))
  / IZR (count (fun _ => true) (families (S (S k)) m)).

Definition probability_of_both (a0 a1 : R) (m t : nat) : R :=
  IZR (count (fun ys => fires t a0 ys && fires t a1 ys) (families (S (S k)) m))
  / IZR (count (fun _ => true) (families (S (S k)) m)).

End Network.

Definition softmax (temperature z : R) : R := exp (z / temperature).
Definition power (beta : nat) (z : R) : R := z ^ beta.
