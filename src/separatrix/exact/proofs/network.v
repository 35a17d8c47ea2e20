From Coq Require Import Reals ZArith List Bool Lia Lra Arith.
From Coquelicot Require Import Coquelicot.
From Bignums Require BigZ.
From Interval Require Import Tactic.
Import ListNotations.
Open Scope R_scope.

(** * 1. The network *)

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

(** * 2. Sums *)

Lemma Sum_ext : forall n f g, (forall i, (i < n)%nat -> f i = g i) -> Sum n f = Sum n g.
Proof.
  induction n as [|n IH]; intros f g H; simpl; [reflexivity|].
  rewrite (IH f g), (H n); auto with arith.
Qed.

Lemma Sum_shift : forall n f, Sum (S n) f = f O + Sum n (fun i => f (S i)).
Proof. induction n as [|n IH]; intros f; [simpl; ring|]. change (Sum (S (S n)) f) with (Sum (S n) f + f (S n)).
  rewrite IH. simpl. ring. Qed.

Lemma Sum_scale : forall n x f, Sum n (fun i => x * f i) = x * Sum n f.
Proof. induction n as [|n IH]; intros; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma Sum_plus : forall n f g, Sum n (fun i => f i + g i) = Sum n f + Sum n g.
Proof. induction n as [|n IH]; intros; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma Sum_const : forall n x, Sum n (fun _ => x) = INR n * x.
Proof. induction n as [|n IH]; intros; [simpl; ring|]. rewrite S_INR. simpl Sum. rewrite IH. ring. Qed.

Lemma Sum_swap : forall n p f, Sum n (fun i => Sum p (fun j => f i j)) = Sum p (fun j => Sum n (fun i => f i j)).
Proof.
  induction n as [|n IH]; intros p f; simpl.
  - rewrite Sum_const. ring.
  - rewrite IH, <- Sum_plus. reflexivity.
Qed.

Lemma Sum_add : forall n p f, Sum (n + p) f = Sum n f + Sum p (fun i => f (n + i)%nat).
Proof.
  intros n p f. induction p as [|p IH]; simpl.
  - rewrite Nat.add_0_r. ring.
  - rewrite Nat.add_succ_r. simpl. rewrite IH. ring.
Qed.

Lemma Sum_blocks : forall k t f, (0 < t)%nat -> Sum (k * t) (fun i => f (i / t)%nat) = INR t * Sum k f.
Proof.
  intros k t f Ht. induction k as [|k IH]; [simpl; ring|].
  replace (S k * t)%nat with (k * t + t)%nat by ring.
  rewrite Sum_add, IH. simpl Sum.
  rewrite (Sum_ext t _ (fun _ => f k)).
  - rewrite Sum_const. ring.
  - intros i Hi. f_equal. rewrite Nat.div_add_l by lia. rewrite Nat.div_small by lia. lia.
Qed.

Lemma Sum_single : forall n p x, (p < n)%nat -> Sum n (fun i => if (p =? i)%nat then x else 0) = x.
Proof.
  induction n as [|n IH]; intros p x H; [lia|]. simpl.
  destruct (Nat.eqb_spec p n) as [->|Hn].
  - rewrite (Sum_ext n _ (fun _ => 0)).
    + rewrite Sum_const. ring.
    + intros i Hi. destruct (Nat.eqb_spec n i); [lia|reflexivity].
  - rewrite IH by lia. ring.
Qed.

Lemma Sum_change : forall n f g, (0 < n)%nat -> (forall i, (0 < i < n)%nat -> f i = g i) ->
  Sum n f = Sum n g + (f O - g O).
Proof.
  intros [|n] f g Hn H; [lia|]. rewrite !Sum_shift.
  rewrite (Sum_ext n (fun i => f (S i)) (fun i => g (S i))) by (intros; apply H; lia). ring.
Qed.

Lemma Sum_pos : forall n f, (0 < n)%nat -> (forall i, (i < n)%nat -> 0 < f i) -> 0 < Sum n f.
Proof.
  induction n as [|n IH]; intros f Hn H; [lia|]. simpl. destruct n as [|n].
  - simpl. specialize (H O). assert (0 < f O) by (apply H; lia). lra.
  - assert (0 < Sum (S n) f) by (apply IH; [lia | intros; apply H; lia]).
    assert (0 < f (S n)) by (apply H; lia). lra.
Qed.

Lemma Sum_nonneg : forall n f, (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= Sum n f.
Proof.
  induction n as [|n IH]; intros f H; simpl; [lra|].
  assert (0 <= Sum n f) by (apply IH; intros; apply H; lia).
  assert (0 <= f n) by (apply H; lia). lra.
Qed.

Lemma Sum_of_nonneg_pos : forall n f, (forall i, (i < n)%nat -> 0 <= f i) ->
  (0 < Sum n f <-> exists i, (i < n)%nat /\ 0 < f i).
Proof.
  induction n as [|n IH]; intros f H; simpl.
  - split; [lra | intros [i [Hi _]]; lia].
  - assert (H' : forall i, (i < n)%nat -> 0 <= f i) by (intros; apply H; lia).
    assert (Hn : 0 <= f n) by (apply H; lia).
    pose proof (Sum_nonneg n f H') as Hs. split.
    + intros Hp. destruct (Rlt_dec 0 (f n)) as [Hf|Hf].
      * exists n. split; [lia | exact Hf].
      * destruct (proj1 (IH f H')) as [i [Hi Hfi]]; [lra|]. exists i. split; [lia | exact Hfi].
    + intros [i [Hi Hf]]. destruct (Nat.eq_dec i n) as [->|Hne]; [lra|].
      assert (0 < Sum n f) by (apply (IH f H'); exists i; split; [lia | exact Hf]). lra.
Qed.

Lemma relu_pos : forall x, 0 < relu x <-> 0 < x.
Proof. intros x. unfold relu, Rmax. destruct (Rle_dec x 0); lra. Qed.

Lemma relu_nonneg : forall x, 0 <= relu x.
Proof. intros x. apply Rmax_r. Qed.

(** * 3. One neuron in one row: attention on n tokens gives N *)

Definition mu (b c tau : R) (yk yd : bool) : R := b * sign yk + c * sign yd - tau.
Definition sigma (a b c tau : R) (y1 yk yd : bool) : R := a * sign y1 + mu b c tau yk yd.

(** N(P, n) at n = k t; rho is the quotient of the spike's score and an ordinary one. *)
Definition excess (a b c tau rho k : R) (y1 yk yd : bool) (plus t : R) : R :=
  rho * sigma a b c tau y1 yk yd - mu b c tau yk yd
  + t * (b * (sign yk + 2 * plus - (k - 1)) + k * (c * sign yd - tau)).

Section Row.

Variable k t : nat.
Variables a b c tau : R.
Variable score : R -> R.
Hypothesis Hk : (2 <= k)%nat.
Hypothesis Ht : (1 <= t)%nat.
Hypothesis Ha : 0 <= a.
Hypothesis Hb : 0 < b.
Hypothesis Hc : 0 < c.
Hypothesis Hscore : forall z, 0 < z -> 0 < score z.

Let n := (k * t)%nat.
Let L := unit k t.

Definition amplitude (i : nat) : R := if (i =? 0)%nat then a else 0.
Definition row_total (i : nat) : R := amplitude i + b + c.

(** rho in row j. *)
Definition ratio (j : nat) : R :=
  score (row_total j * (a + b + c) * ln (INR n)) / score (row_total j * (b + c) * ln (INR n)).

Lemma n_pos : (2 <= n)%nat. Proof. unfold n. nia. Qed.

Lemma ln_pos : 0 < ln (INR n).
Proof. rewrite <- ln_1. apply ln_increasing; [lra|]. apply lt_1_INR. pose proof n_pos. lia. Qed.

Lemma unit_pos : 0 < L.
Proof. unfold L, unit. apply sqrt_lt_R0, ln_pos. Qed.

Lemma unit_square : L * L = ln (INR n).
Proof. unfold L, unit. apply sqrt_sqrt. left. apply ln_pos. Qed.

Lemma block_bound : forall i, (i < n)%nat -> (i / t < k)%nat.
Proof. intros i Hi. apply Nat.div_lt_upper_bound; unfold n in Hi; nia. Qed.

Lemma row_total_pos : forall i, 0 < row_total i.
Proof. intros i. unfold row_total, amplitude. destruct (i =? 0)%nat; lra. Qed.

Lemma row_sum_eq : forall i, (i < n)%nat -> row_sum k b c t a i = L * row_total i.
Proof.
  intros i Hi. unfold row_sum. rewrite !Sum_shift. unfold entry. fold L.
  rewrite Sum_scale, Sum_single by (apply block_bound; exact Hi).
  unfold row_total, amplitude. destruct (i =? 0)%nat; ring.
Qed.

Lemma logit_eq : forall j i, (j < n)%nat -> (i < n)%nat ->
  logit k b c t a j i = row_total j * row_total i * ln (INR n).
Proof. intros j i Hj Hi. unfold logit. rewrite !row_sum_eq by assumption. rewrite <- unit_square. ring. Qed.

Lemma score_pos : forall j i, (j < n)%nat -> (i < n)%nat -> 0 < score (logit k b c t a j i).
Proof.
  intros j i Hj Hi. apply Hscore. rewrite logit_eq by assumption.
  pose proof (row_total_pos j). pose proof (row_total_pos i). pose proof ln_pos.
  repeat apply Rmult_lt_0_compat; assumption.
Qed.

(** A token's value under the signs, in units of L. *)
Definition value (y : list bool) (i : nat) : R :=
  amplitude i * sign (nth 0 y false) + c * sign (nth 1 y false) + b * sign (nth (S (S (i / t))) y false).

Lemma value_eq : forall y i, (i < n)%nat ->
  Sum (S (S k)) (fun column => entry k b c t a i column * sign (nth column y false)) = L * value y i.
Proof.
  intros y i Hi. rewrite !Sum_shift. unfold entry. fold L.
  rewrite (Sum_ext k _ (fun block => L * (if (i / t =? block)%nat then b * sign (nth (S (S (i / t))) y false) else 0))).
  - rewrite Sum_scale, Sum_single by (apply block_bound; exact Hi).
    unfold value, amplitude. destruct (i =? 0)%nat; ring.
  - intros block _. destruct (Nat.eqb_spec (i / t) block) as [->|_]; ring.
Qed.

Lemma activation_eq : forall y j, (j < n)%nat ->
  activation k b c score t a y j - tau * L =
  L / Sum n (fun i => score (logit k b c t a j i))
  * Sum n (fun i => score (logit k b c t a j i) * (value y i - tau)).
Proof.
  intros y j Hj. set (u := fun i => score (logit k b c t a j i)).
  assert (HS : 0 < Sum n u) by (apply Sum_pos; [pose proof n_pos; lia | intros; apply score_pos; assumption]).
  unfold activation, output. fold n.
  rewrite (Sum_ext (S (S k)) _ (fun column => Sum n (fun i => weight k b c score t a j i * (entry k b c t a i column * sign (nth column y false))))).
  2:{ intros col _. rewrite Rmult_comm, <- Sum_scale. apply Sum_ext. intros. ring. }
  rewrite Sum_swap.
  rewrite (Sum_ext n _ (fun i => L / Sum n u * (u i * value y i))).
  2:{ intros i Hi. rewrite Sum_scale, value_eq by exact Hi. unfold weight. fold n. fold (u i). fold u.
      field. lra. }
  rewrite Sum_scale.
  change (fun i => score (logit k b c t a j i) * (value y i - tau)) with (fun i => u i * (value y i - tau)).
  change (fun i => score (logit k b c t a j i)) with u.
  rewrite (Sum_ext n (fun i => u i * (value y i - tau)) (fun i => u i * value y i + (- tau) * u i)) by (intros; ring).
  rewrite Sum_plus, Sum_scale. field. lra.
Qed.

Lemma count_signs : forall o : list bool, Sum (length o) (fun i => sign (nth i o false)) = 2 * IZR (count (fun y => y) o) - INR (length o).
Proof.
  induction o as [|y o IH]; [simpl; ring|].
  cbn [length]. rewrite Sum_shift. cbn [nth count]. rewrite IH, plus_IZR, S_INR.
  destruct y; unfold sign; simpl; ring.
Qed.

Lemma excess_eq : forall y1 yd yk o j, (j < n)%nat -> length o = (k - 1)%nat ->
  Sum n (fun i => score (logit k b c t a j i) * (value (y1 :: yd :: yk :: o) i - tau))
  = score (row_total j * (b + c) * ln (INR n))
    * excess a b c tau (ratio j) (INR k) y1 yk yd (IZR (count (fun y => y) o)) (INR t).
Proof.
  intros y1 yd yk o j Hj Ho.
  assert (Hn := n_pos).
  set (u0 := score (row_total j * (b + c) * ln (INR n))).
  assert (Hu0 : 0 < u0).
  { apply Hscore. pose proof (row_total_pos j). pose proof ln_pos. repeat apply Rmult_lt_0_compat; lra. }
  rewrite (Sum_change n _ (fun i => u0 * (c * sign yd - tau + b * sign (nth (i / t) (yk :: o) false)))).
  2: lia.
  2:{ intros i Hi. rewrite logit_eq by lia. unfold value, row_total at 2, amplitude.
      destruct i as [|i]; [lia|]. cbn [Nat.eqb].
      replace (0 + b + c) with (b + c) by ring. fold u0. cbn [nth]. ring. }
  rewrite Sum_scale. unfold n at 1.
  rewrite (Sum_blocks k t (fun q => c * sign yd - tau + b * sign (nth q (yk :: o) false))) by lia.
  rewrite Sum_plus, Sum_const, Sum_scale.
  replace (Sum k (fun i => sign (nth i (yk :: o) false)))
    with (sign yk + (2 * IZR (count (fun y => y) o) - (INR k - 1))).
  2:{ replace k with (S (length o)) at 2 by lia. rewrite Sum_shift. cbn [nth]. rewrite count_signs.
      replace (INR k) with (INR (length o) + 1) by (rewrite <- S_INR; f_equal; lia). ring. }
  rewrite logit_eq by lia. unfold value. rewrite Nat.div_0_l by lia. cbn [nth].
  unfold row_total at 2, amplitude. cbn [Nat.eqb].
  unfold excess, sigma, mu, ratio. fold u0. field. lra.
Qed.

(** A neuron fires in row j if and only if N is positive. *)
Lemma activation_pos : forall y1 yd yk o j, (j < n)%nat -> length o = (k - 1)%nat ->
  (0 < activation k b c score t a (y1 :: yd :: yk :: o) j - tau * L
   <-> 0 < excess a b c tau (ratio j) (INR k) y1 yk yd (IZR (count (fun y => y) o)) (INR t)).
Proof.
  intros y1 yd yk o j Hj Ho. rewrite activation_eq, excess_eq by assumption.
  set (e := excess _ _ _ _ _ _ _ _ _ _ _).
  assert (HS : 0 < Sum n (fun i => score (logit k b c t a j i)))
    by (apply Sum_pos; [pose proof n_pos; lia | intros; apply score_pos; assumption]).
  assert (Hu : 0 < score (row_total j * (b + c) * ln (INR n))).
  { apply Hscore. pose proof (row_total_pos j). pose proof ln_pos. repeat apply Rmult_lt_0_compat; lra. }
  pose proof unit_pos as HL.
  set (S := Sum n _) in *. set (u0 := score _) in *.
  replace (L / S * (u0 * e)) with ((L * u0 / S) * e) by (field; lra).
  assert (Hf : 0 < L * u0 / S) by (apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; assumption).
  split; intros H; [|apply Rmult_lt_0_compat; assumption].
  apply (Rmult_lt_reg_l (L * u0 / S)); [exact Hf | rewrite Rmult_0_r; exact H].
Qed.

(** rho in the spike's row and in the others. *)
Definition spike_ratio : R := score ((a + b + c) * (a + b + c) * ln (INR n)) / score ((a + b + c) * (b + c) * ln (INR n)).
Definition other_ratio : R := score ((b + c) * (a + b + c) * ln (INR n)) / score ((b + c) * (b + c) * ln (INR n)).

Definition neuron_fires (y : list bool) : Prop := exists j, (j < n)%nat /\ 0 < activation k b c score t a y j - tau * L.

Lemma neuron_iff : forall y1 yd yk o, length o = (k - 1)%nat ->
  (neuron_fires (y1 :: yd :: yk :: o) <->
   0 < excess a b c tau spike_ratio (INR k) y1 yk yd (IZR (count (fun y => y) o)) (INR t) \/
   0 < excess a b c tau other_ratio (INR k) y1 yk yd (IZR (count (fun y => y) o)) (INR t)).
Proof.
  intros y1 yd yk o Ho. pose proof n_pos as Hn.
  assert (E0 : ratio 0 = spike_ratio) by (unfold ratio, row_total, amplitude; reflexivity).
  assert (E1 : forall j, ratio (S j) = other_ratio).
  { intros j. unfold ratio, row_total, amplitude, other_ratio. cbn [Nat.eqb]. rewrite Rplus_0_l. reflexivity. }
  unfold neuron_fires. split.
  - intros [[|j] [Hj H]]; apply activation_pos in H; try assumption.
    + left. rewrite <- E0. exact H.
    + right. rewrite <- (E1 j). exact H.
  - intros [H|H].
    + exists O. split; [lia|]. apply activation_pos; [lia | exact Ho |]. rewrite E0. exact H.
    + exists 1%nat. split; [lia|]. apply activation_pos; [lia | exact Ho |]. rewrite E1. exact H.
Qed.

(** The network fires if and only if one of its neurons does. *)
Lemma network_pos : forall ys, 0 < network k b c tau score t a ys <-> exists y, In y ys /\ neuron_fires y.
Proof.
  intros ys. unfold network. fold n. fold L. rewrite relu_pos.
  rewrite Sum_of_nonneg_pos by (intros; apply relu_nonneg). split.
  - intros [j [Hj H]]. rewrite relu_pos, Sum_of_nonneg_pos in H by (intros; apply relu_nonneg).
    destruct H as [i [Hi H]]. rewrite relu_pos in H.
    exists (nth i ys []). split; [apply nth_In; exact Hi | exists j; split; assumption].
  - intros [y [Hy [j [Hj H]]]]. exists j. split; [exact Hj|].
    rewrite relu_pos, Sum_of_nonneg_pos by (intros; apply relu_nonneg).
    destruct (In_nth ys y [] Hy) as [i [Hi E]]. exists i. split; [exact Hi|]. rewrite relu_pos, E. exact H.
Qed.

End Row.

(** * 4. m neurons give P, sign vectors give binomials *)

Lemma count_ext {A : Type} (p q : A -> bool) (l : list A) :
  (forall x, In x l -> p x = q x) -> count p l = count q l.
Proof.
  induction l as [|x l IH]; intros H; simpl; [reflexivity|].
  rewrite (H x) by (left; reflexivity). rewrite IH; [reflexivity|]. intros z Hz. apply H. right. exact Hz.
Qed.

Lemma count_app {A : Type} (p : A -> bool) (l l' : list A) : count p (l ++ l') = (count p l + count p l')%Z.
Proof. induction l as [|x l IH]; simpl; [reflexivity|]. rewrite IH. ring. Qed.

Lemma count_map {A B : Type} (p : B -> bool) (f : A -> B) (l : list A) : count p (map f l) = count (fun x => p (f x)) l.
Proof. induction l as [|x l IH]; simpl; [reflexivity|]. rewrite IH. reflexivity. Qed.

Lemma count_none {A : Type} (l : list A) : count (fun _ => false) l = 0%Z.
Proof. induction l as [|x l IH]; simpl; [reflexivity | exact IH]. Qed.

Lemma count_minus {A : Type} (p q : A -> bool) (l : list A) :
  (forall x, q x = true -> p x = true) -> count (fun x => p x && negb (q x)) l = (count p l - count q l)%Z.
Proof.
  intros H. induction l as [|x l IH]; cbn [count]; [reflexivity|]. rewrite IH.
  specialize (H x). destruct (p x), (q x); cbn [andb negb]; try lia; discriminate (H eq_refl).
Qed.

Lemma count_both {A : Type} (p q : A -> bool) (l : list A) :
  count (fun x => negb (p x) && negb (q x)) l
  = (count (fun _ => true) l - count p l - count q l + count (fun x => p x && q x) l)%Z.
Proof.
  induction l as [|x l IH]; cbn [count]; [reflexivity|]. rewrite IH.
  destruct (p x), (q x); cbn [andb negb]; lia.
Qed.

Lemma vectors_length : forall d y, In y (vectors d) -> length y = d.
Proof.
  induction d as [|d IH]; intros y H; simpl in H.
  - destruct H as [<-|[]]. reflexivity.
  - apply in_app_or in H. destruct H as [H|H]; apply in_map_iff in H; destruct H as [z [<- Hz]]; simpl; f_equal;
    apply IH; exact Hz.
Qed.

Lemma families_members : forall d m ys y, In ys (families d m) -> In y ys -> In y (vectors d).
Proof.
  induction m as [|m IH]; intros ys y H Hy; simpl in H.
  - destruct H as [<-|[]]. destruct Hy.
  - apply in_flat_map in H. destruct H as [z [Hz H]]. apply in_map_iff in H. destruct H as [zs [<- Hzs]].
    destruct Hy as [<-|Hy]; [exact Hz | apply (IH zs); assumption].
Qed.

Lemma count_families : forall d m p, count (forallb p) (families d m) = (count p (vectors d) ^ Z.of_nat m)%Z.
Proof.
  intros d m p. induction m as [|m IH]; [reflexivity|].
  rewrite Nat2Z.inj_succ, Z.pow_succ_r by lia. rewrite <- IH. simpl families.
  clear IH. induction (vectors d) as [|y l IHl]; [reflexivity|]. cbn [flat_map count].
  rewrite count_app, IHl, count_map. cbn [forallb].
  destruct (p y); cbn [andb]; [|rewrite count_none; ring].
  change (count (fun ys => forallb p ys) (families d m)) with (count (forallb p) (families d m)). ring.
Qed.

(** Row k of Pascal's triangle, and the number of vectors of length k that satisfy a predicate of their count of +. *)
Fixpoint add_lists (l l' : list Z) : list Z :=
  match l, l' with
  | [], _ => l'
  | _, [] => l
  | x :: r, x' :: r' => (x + x')%Z :: add_lists r r'
  end.

Fixpoint binomials (k : nat) : list Z :=
  match k with O => [1%Z] | S k' => let l := binomials k' in add_lists (0%Z :: l) l end.

Fixpoint sum_where (p : Z -> bool) (i : Z) (l : list Z) : Z :=
  match l with [] => 0%Z | x :: r => ((if p i then x else 0) + sum_where p (i + 1) r)%Z end.

Lemma sum_where_add : forall l l' p i, sum_where p i (add_lists l l') = (sum_where p i l + sum_where p i l')%Z.
Proof.
  induction l as [|x l IH]; intros [|x' l'] p i; simpl; try ring. rewrite IH. destruct (p i); ring.
Qed.

Lemma sum_where_shift : forall l p i, sum_where p (i + 1) l = sum_where (fun j => p (j + 1)%Z) i l.
Proof. induction l as [|x l IH]; intros p i; simpl; [reflexivity|]. rewrite IH. reflexivity. Qed.

Definition plus_count (o : list bool) : Z := count (fun y => y) o.

Lemma count_vectors : forall k p,
  count (fun o => p (plus_count o)) (vectors k) = sum_where p 0 (binomials k).
Proof.
  induction k as [|k IH]; intros p; [cbn; ring|].
  cbn [vectors binomials]. cbv zeta. rewrite count_app, !count_map, sum_where_add. cbn [sum_where].
  rewrite (sum_where_shift (binomials k) p 0), <- (IH p), <- (IH (fun j => p (j + 1)%Z)).
  rewrite (count_ext (fun o => p (plus_count (true :: o))) (fun o => p (plus_count o + 1)%Z)).
  2:{ intros o _. f_equal. unfold plus_count. cbn [count]. ring. }
  rewrite (count_ext (fun o => p (plus_count (false :: o))) (fun o => p (plus_count o))).
  2:{ intros o _. f_equal. }
  destruct (p 0%Z); ring.
Qed.

(** The number of sign vectors of length k+3 that satisfy a predicate of (y1, yd, yk, count of + among the others). *)
Definition number (row : list Z) (p : bool -> bool -> bool -> Z -> bool) : Z :=
  (sum_where (p true true true) 0 row + sum_where (p true true false) 0 row
   + sum_where (p true false true) 0 row + sum_where (p true false false) 0 row
   + sum_where (p false true true) 0 row + sum_where (p false true false) 0 row
   + sum_where (p false false true) 0 row + sum_where (p false false false) 0 row)%Z.

Lemma count_number : forall k (g : list bool -> bool) p,
  (forall y1 yd yk o, length o = k -> g (y1 :: yd :: yk :: o) = p y1 yd yk (plus_count o)) ->
  count g (vectors (S (S (S k)))) = number (binomials k) p.
Proof.
  intros k g p H. change (vectors (S (S (S k)))) with
    (let v2 := map (cons true) (vectors k) ++ map (cons false) (vectors k) in
     let v1 := map (cons true) v2 ++ map (cons false) v2 in map (cons true) v1 ++ map (cons false) v1).
  cbv zeta. repeat rewrite ?count_app, ?count_map. unfold number.
  rewrite <- !count_vectors.
  repeat match goal with
  | |- context [count (fun x => g (?u :: ?v :: ?w :: x)) (vectors k)] =>
      rewrite (count_ext (fun x => g (u :: v :: w :: x)) (fun o => p u v w (plus_count o)))
        by (intros o Ho; apply H; apply vectors_length; exact Ho)
  end. ring.
Qed.

Lemma existsb_iff {A : Type} (f : A -> bool) (P : A -> Prop) (l : list A) :
  (forall x, In x l -> (f x = true <-> P x)) -> ((exists x, In x l /\ P x) <-> existsb f l = true).
Proof.
  intros H. rewrite existsb_exists. split; intros [x [Hx Hp]]; exists x; (split; [exact Hx|]); apply (H x Hx); exact Hp.
Qed.

Lemma negb_existsb {A : Type} (f : A -> bool) (l : list A) : negb (existsb f l) = forallb (fun x => negb (f x)) l.
Proof. induction l as [|x l IH]; simpl; [reflexivity|]. rewrite negb_orb, IH. reflexivity. Qed.

(** P as a quotient of integers, from the least firing counts T0 and T1 of the eight sign triples. *)
(** The least count is looked up once for all counts. *)
Definition silent (T : bool -> bool -> bool -> Z) (y1 yd yk : bool) : Z -> bool :=
  let least := T y1 yd yk in fun plus => negb (least <=? plus)%Z.

Definition silent_in_one (row : list Z) (T : bool -> bool -> bool -> Z) : Z := number row (silent T).
Definition silent_in_both (row : list Z) (T0 T1 : bool -> bool -> bool -> Z) : Z :=
  number row (fun y1 yd yk =>
    let silent0 := silent T0 y1 yd yk in let silent1 := silent T1 y1 yd yk in fun plus => silent0 plus && silent1 plus).

Section Probability.

Variable k t m : nat.
Variables a0 a1 b c tau : R.
Variable score : R -> R.
Hypothesis Hk : (2 <= k)%nat.
Hypothesis Ht : (1 <= t)%nat.
Hypothesis Ha0 : 0 <= a0.
Hypothesis Ha1 : 0 <= a1.
Hypothesis Hb : 0 < b.
Hypothesis Hc : 0 < c.
Hypothesis Hscore : forall z, 0 < z -> 0 < score z.

Definition is_threshold (a : R) (T : bool -> bool -> bool -> Z) : Prop :=
  forall y1 yd yk plus, (0 <= plus <= Z.of_nat (k - 1))%Z ->
  (0 < excess a b c tau (spike_ratio k t a b c score) (INR k) y1 yk yd (IZR plus) (INR t) \/
   0 < excess a b c tau (other_ratio k t a b c score) (INR k) y1 yk yd (IZR plus) (INR t)
   <-> (T y1 yd yk <= plus)%Z).

Variables T0 T1 : bool -> bool -> bool -> Z.
Hypothesis HT0 : is_threshold a0 T0.
Hypothesis HT1 : is_threshold a1 T1.

Definition fires_by (T : bool -> bool -> bool -> Z) (y : list bool) : bool :=
  match y with y1 :: yd :: yk :: o => (T y1 yd yk <=? plus_count o)%Z | _ => false end.

Lemma plus_count_bounds : forall o, (0 <= plus_count o <= Z.of_nat (length o))%Z.
Proof.
  unfold plus_count. induction o as [|y o IH]; [cbn; lia|]. cbn [count length]. rewrite Nat2Z.inj_succ. destruct y; cbv iota; lia.
Qed.

Lemma fires_by_iff : forall a T, 0 <= a -> is_threshold a T -> forall y, length y = S (S k) ->
  (fires_by T y = true <-> neuron_fires k t a b c tau score y).
Proof.
  intros a T Ha HT y Hy. destruct y as [|y1 [|yd [|yk o]]]; simpl in Hy; try lia.
  assert (Ho : length o = (k - 1)%nat) by lia.
  rewrite neuron_iff by assumption. simpl. rewrite Z.leb_le.
  pose proof (plus_count_bounds o) as Hp. rewrite Ho in Hp.
  rewrite (HT y1 yd yk (plus_count o) Hp). unfold plus_count. tauto.
Qed.

Lemma fires_eq : forall a T ys, 0 <= a -> is_threshold a T -> In ys (families (S (S k)) m) ->
  fires k b c tau score t a ys = existsb (fires_by T) ys.
Proof.
  intros a T ys Ha HT Hys. unfold fires.
  assert (E : 0 < network k b c tau score t a ys <-> existsb (fires_by T) ys = true).
  { rewrite network_pos. apply existsb_iff. intros y Hy. apply fires_by_iff; try assumption.
    apply vectors_length. apply (families_members _ m ys); assumption. }
  destruct (Rlt_dec 0 (network k b c tau score t a ys)) as [H|H]; destruct (existsb (fires_by T) ys); tauto || (try reflexivity);
  exfalso; tauto || (destruct E as [E1 E2]; try (discriminate (E1 H)); apply H, E2; reflexivity).
Qed.

Lemma forallb_and {A : Type} (p q : A -> bool) (l : list A) :
  forallb p l && forallb q l = forallb (fun x => p x && q x) l.
Proof.
  induction l as [|x l IH]; simpl; [reflexivity|]. rewrite <- IH.
  destruct (p x), (q x), (forallb p l); reflexivity.
Qed.

Lemma all_families : forall d, count (fun _ => true) (families d m) = ((2 ^ Z.of_nat d) ^ Z.of_nat m)%Z.
Proof.
  intros d. rewrite (count_ext (fun _ => true) (forallb (fun _ => true))).
  2:{ intros ys _. symmetry. induction ys; simpl; auto. }
  rewrite count_families. f_equal. induction d as [|d IH]; [reflexivity|].
  rewrite Nat2Z.inj_succ, Z.pow_succ_r by lia. simpl vectors. rewrite count_app, !count_map, IH. ring.
Qed.

Let none0 (ys : list (list bool)) := forallb (fun y => negb (fires_by T0 y)) ys.
Let none1 (ys : list (list bool)) := forallb (fun y => negb (fires_by T1 y)) ys.

Lemma fires_none : forall ys, In ys (families (S (S k)) m) ->
  fires k b c tau score t a0 ys = negb (none0 ys) /\ fires k b c tau score t a1 ys = negb (none1 ys).
Proof.
  intros ys Hys. rewrite (fires_eq a0 T0), (fires_eq a1 T1) by assumption.
  unfold none0, none1. rewrite <- !negb_existsb, !negb_involutive. split; reflexivity.
Qed.

Lemma count_none0 : count none0 (families (S (S k)) m) = (silent_in_one (binomials (k - 1)) T0 ^ Z.of_nat m)%Z.
Proof.
  unfold none0. rewrite count_families. replace (S (S k)) with (S (S (S (k - 1)))) by lia.
  f_equal. apply count_number. reflexivity.
Qed.

Lemma count_none1 : count none1 (families (S (S k)) m) = (silent_in_one (binomials (k - 1)) T1 ^ Z.of_nat m)%Z.
Proof.
  unfold none1. rewrite count_families. replace (S (S k)) with (S (S (S (k - 1)))) by lia.
  f_equal. apply count_number. reflexivity.
Qed.

Lemma count_none_in_both :
  count (fun ys => none0 ys && none1 ys) (families (S (S k)) m)
  = (silent_in_both (binomials (k - 1)) T0 T1 ^ Z.of_nat m)%Z.
Proof.
  unfold none0, none1.
  rewrite (count_ext _ (forallb (fun y => negb (fires_by T0 y) && negb (fires_by T1 y))))
    by (intros; apply forallb_and).
  rewrite count_families. replace (S (S k)) with (S (S (S (k - 1)))) by lia.
  f_equal. apply count_number. reflexivity.
Qed.

Theorem probability_eq :
  probability k b c tau score a0 a1 m t =
  IZR (silent_in_one (binomials (k - 1)) T0 ^ Z.of_nat m - silent_in_both (binomials (k - 1)) T0 T1 ^ Z.of_nat m)
  / IZR ((2 ^ Z.of_nat (S (S k))) ^ Z.of_nat m).
Proof.
  unfold probability. rewrite all_families. f_equal. f_equal.
  rewrite (count_ext _ (fun ys => none0 ys && negb (none0 ys && none1 ys))).
  2:{ intros ys Hys. destruct (fires_none ys Hys) as [-> ->]. destruct (none0 ys), (none1 ys); reflexivity. }
  rewrite count_minus by (intros ys H; apply andb_true_iff in H; apply H).
  rewrite count_none0, count_none_in_both. reflexivity.
Qed.

Theorem probability_of_both_eq :
  probability_of_both k b c tau score a0 a1 m t =
  IZR ((2 ^ Z.of_nat (S (S k))) ^ Z.of_nat m - silent_in_one (binomials (k - 1)) T0 ^ Z.of_nat m
       - silent_in_one (binomials (k - 1)) T1 ^ Z.of_nat m + silent_in_both (binomials (k - 1)) T0 T1 ^ Z.of_nat m)
  / IZR ((2 ^ Z.of_nat (S (S k))) ^ Z.of_nat m).
Proof.
  unfold probability_of_both. rewrite all_families. f_equal. f_equal.
  rewrite (count_ext _ (fun ys => negb (none0 ys) && negb (none1 ys))).
  2:{ intros ys Hys. destruct (fires_none ys Hys) as [-> ->]. reflexivity. }
  rewrite count_both, all_families, count_none0, count_none1, count_none_in_both. reflexivity.
Qed.

End Probability.

(** * 5. The shape of N: signs at the ends of a range decide it for every real t within *)

Definition soft (s k x : R) : R := exp (s * ln (k * x)).

Definition slope (a b c tau s k : R) (y1 yk yd : bool) (x : R) : R :=
  sigma a b c tau y1 yk yd * (s - 1) * soft s k x + mu b c tau yk yd.

Lemma soft_pos : forall s k x, 0 < soft s k x.
Proof. intros. apply exp_pos. Qed.

Lemma soft_increasing : forall s k x x', 0 <= s -> 0 < k -> 0 < x <= x' -> soft s k x <= soft s k x'.
Proof.
  intros s k x x' Hs Hk [Hx Hx']. unfold soft. destruct Hx' as [Hx'| ->]; [|lra].
  assert (H : ln (k * x) < ln (k * x')) by (apply ln_increasing; nra).
  destruct (Rle_lt_or_eq_dec 0 s Hs) as [Hp| <-]; [|rewrite !Rmult_0_l; lra].
  left. apply exp_increasing. nra.
Qed.

Lemma soft_one : forall k x, 0 < k -> 0 < x -> soft 1 k x = k * x.
Proof. intros k x Hk Hx. unfold soft. rewrite Rmult_1_l. apply exp_ln. nra. Qed.

Lemma soft_zero : forall k x, soft 0 k x = 1.
Proof. intros. unfold soft. rewrite Rmult_0_l. apply exp_0. Qed.

(** n^s is rational at a perfect power. *)
Lemma soft_rational : forall s k x q (p r : nat), 0 < k * x -> 0 < q -> (0 < r)%nat -> s * INR r = INR p ->
  q ^ r = (k * x) ^ p -> soft s k x = q.
Proof.
  intros s k x q p r Hx Hq Hr Hs Hp. unfold soft.
  assert (H : INR r * ln q = INR p * ln (k * x)) by (rewrite <- !ln_pow by assumption; rewrite Hp; reflexivity).
  assert (Hr' : 0 < INR r) by (apply lt_0_INR; exact Hr).
  replace (s * ln (k * x)) with (ln q); [apply exp_ln; exact Hq|].
  apply (Rmult_eq_reg_l (INR r)); [|lra]. rewrite H, <- Hs. ring.
Qed.

Section Shape.

Variables a b c tau s k : R.
Variables y1 yk yd : bool.
Hypothesis Hs : 0 <= s.
Hypothesis Hk : 0 < k.

Let sg := sigma a b c tau y1 yk yd.
Let m := mu b c tau yk yd.
Let h := slope a b c tau s k y1 yk yd.
Let E (plus x : R) := excess a b c tau (soft s k x) k y1 yk yd plus x.

(** N/t up to a constant. *)
Let G (x : R) := (soft s k x * sg - m) / x.
Let B (plus : R) := b * (sign yk + 2 * plus - (k - 1)) + k * (c * sign yd - tau).

Lemma excess_shape : forall plus x, 0 < x -> E plus x = x * (G x + B plus).
Proof. intros plus x Hx. unfold E, G, B, excess. fold sg m. field. lra. Qed.

Lemma shape_derivative : forall x, 0 < x -> derivable_pt_lim G x (h x / (x * x)).
Proof.
  intros x Hx. apply is_derive_Reals. unfold G, h, slope, soft. fold sg m.
  auto_derive; [repeat split; nra|]. field. lra.
Qed.

Lemma slope_between : forall x x1 x2, 0 < x1 -> x1 <= x <= x2 ->
  (0 <= h x1 -> 0 <= h x2 -> 0 <= h x) /\ (h x1 <= 0 -> h x2 <= 0 -> h x <= 0).
Proof.
  intros x x1 x2 Hx1 Hx. unfold h, slope. fold sg m.
  assert (H1 : soft s k x1 <= soft s k x) by (apply soft_increasing; lra).
  assert (H2 : soft s k x <= soft s k x2) by (apply soft_increasing; lra).
  destruct (Rle_dec 0 (sg * (s - 1))) as [HA|HA]; split; intros; nra.
Qed.

Lemma slope_tail : forall x x1, 0 < x1 -> x1 <= x ->
  (0 <= sg * (s - 1) -> 0 <= h x1 -> 0 <= h x) /\ (sg * (s - 1) <= 0 -> h x1 <= 0 -> h x <= 0).
Proof.
  intros x x1 Hx1 Hx. unfold h, slope. fold sg m.
  assert (H1 : soft s k x1 <= soft s k x) by (apply soft_increasing; lra).
  split; intros; nra.
Qed.

Lemma increasing : forall x1 x2, 0 < x1 -> x1 <= x2 -> (forall x, x1 <= x <= x2 -> 0 <= h x) -> G x1 <= G x2.
Proof.
  intros x1 x2 H1 [H12| ->] H; [|lra].
  destruct (MVT_cor2 G (fun x => h x / (x * x)) x1 x2 H12) as [x [Hx Hin]].
  - intros x Hx. apply shape_derivative. lra.
  - assert (0 <= h x / (x * x)).
    { apply Rmult_le_pos; [apply H; lra | left; apply Rinv_0_lt_compat; nra]. }
    nra.
Qed.

Lemma decreasing : forall x1 x2, 0 < x1 -> x1 <= x2 -> (forall x, x1 <= x <= x2 -> h x <= 0) -> G x2 <= G x1.
Proof.
  intros x1 x2 H1 [H12| ->] H; [|lra].
  destruct (MVT_cor2 G (fun x => h x / (x * x)) x1 x2 H12) as [x [Hx Hin]].
  - intros x Hx. apply shape_derivative. lra.
  - assert (0 <= - h x / (x * x)).
    { apply Rmult_le_pos; [specialize (H x); lra | left; apply Rinv_0_lt_compat; nra]. }
    assert (h x / (x * x) <= 0) by (unfold Rdiv in *; lra). nra.
Qed.

(** Both slopes have one sign: N/t is monotone between. *)
Definition one_sign (x1 x2 : R) : Prop := (0 <= h x1 /\ 0 <= h x2) \/ (h x1 <= 0 /\ h x2 <= 0).

Lemma between : forall x1 x2 x, 0 < x1 -> x1 <= x <= x2 -> one_sign x1 x2 ->
  Rmin (G x1) (G x2) <= G x <= Rmax (G x1) (G x2).
Proof.
  intros x1 x2 x H1 Hx [[Ha Hb]|[Ha Hb]].
  - assert (G x1 <= G x).
    { apply increasing; [lra | lra |]. intros z Hz. apply (slope_between z x1 x2); try assumption; lra. }
    assert (G x <= G x2).
    { apply increasing; [lra | lra |]. intros z Hz. apply (slope_between z x1 x2); try assumption; lra. }
    unfold Rmin, Rmax. destruct (Rle_dec (G x1) (G x2)); lra.
  - assert (G x <= G x1).
    { apply decreasing; [lra | lra |]. intros z Hz. apply (slope_between z x1 x2); try assumption; lra. }
    assert (G x2 <= G x).
    { apply decreasing; [lra | lra |]. intros z Hz. apply (slope_between z x1 x2); try assumption; lra. }
    unfold Rmin, Rmax. destruct (Rle_dec (G x1) (G x2)); lra.
Qed.

Lemma sign_of_shape : forall plus x, 0 < x -> (0 < E plus x <-> 0 < G x + B plus).
Proof. intros plus x Hx. rewrite excess_shape by exact Hx. split; intros; nra. Qed.

Lemma piece_fires : forall plus x1 x2, 0 < x1 -> one_sign x1 x2 -> 0 < E plus x1 -> 0 < E plus x2 ->
  forall x, x1 <= x <= x2 -> 0 < E plus x.
Proof.
  intros plus x1 x2 H1 Ho Ha Hb x Hx. pose proof (between x1 x2 x H1 Hx Ho) as Hg.
  apply sign_of_shape in Ha, Hb; try lra. apply sign_of_shape; [lra|].
  unfold Rmin in Hg. destruct (Rle_dec (G x1) (G x2)); lra.
Qed.

Lemma piece_silent : forall plus x1 x2, 0 < x1 -> one_sign x1 x2 -> E plus x1 <= 0 -> E plus x2 <= 0 ->
  forall x, x1 <= x <= x2 -> E plus x <= 0.
Proof.
  intros plus x1 x2 H1 Ho Ha Hb x Hx. pose proof (between x1 x2 x H1 Hx Ho) as Hg.
  apply Rnot_lt_le. intros Hc. apply sign_of_shape in Hc; [|lra].
  assert (G x1 + B plus <= 0) by (apply Rnot_lt_le; intros H; apply sign_of_shape in H; lra).
  assert (G x2 + B plus <= 0) by (apply Rnot_lt_le; intros H'; apply sign_of_shape in H'; lra).
  unfold Rmax in Hg. destruct (Rle_dec (G x1) (G x2)); lra.
Qed.

(** Ranges without an end. *)
Lemma tail_rises : forall plus x1, 0 < x1 -> 0 <= sg * (s - 1) -> 0 <= h x1 -> 0 < E plus x1 ->
  forall x, x1 <= x -> 0 < E plus x.
Proof.
  intros plus x1 H1 HA Hh He x Hx. apply sign_of_shape in He; [|exact H1]. apply sign_of_shape; [lra|].
  assert (G x1 <= G x); [|lra]. apply increasing; [exact H1 | exact Hx |].
  intros z Hz. apply (slope_tail z x1); lra.
Qed.

Lemma tail_falls : forall plus x1, 0 < x1 -> sg * (s - 1) <= 0 -> h x1 <= 0 -> E plus x1 <= 0 ->
  forall x, x1 <= x -> E plus x <= 0.
Proof.
  intros plus x1 H1 HA Hh He x Hx. apply Rnot_lt_le. intros Hc. apply sign_of_shape in Hc; [|lra].
  assert (G x1 + B plus <= 0) by (apply Rnot_lt_le; intros H; apply sign_of_shape in H; lra).
  assert (G x <= G x1); [|lra]. apply decreasing; [exact H1 | exact Hx |].
  intros z Hz. apply (slope_tail z x1); lra.
Qed.

(** N/t falls, but N is at least s sigma rho + B t. *)
Lemma tail_falls_and_fires : forall plus x1, 0 < x1 -> sg * (s - 1) <= 0 -> h x1 <= 0 ->
  0 < s * sg -> 0 <= B plus -> forall x, x1 <= x -> 0 < E plus x.
Proof.
  intros plus x1 H1 HA Hh Hsg HB x Hx.
  assert (Hhx : h x <= 0) by (apply (slope_tail x x1); lra).
  unfold E, excess. fold sg m. fold (B plus). unfold h, slope in Hhx. fold sg m in Hhx.
  pose proof (soft_pos s k x). nra.
Qed.

(** N/t rises, but N is at most s sigma rho + B t. *)
Lemma tail_rises_and_is_silent : forall plus x1, 0 < x1 -> 0 <= sg * (s - 1) -> 0 <= h x1 ->
  s * sg <= 0 -> B plus <= 0 -> forall x, x1 <= x -> E plus x <= 0.
Proof.
  intros plus x1 H1 HA Hh Hsg HB x Hx.
  assert (Hhx : 0 <= h x) by (apply (slope_tail x x1); lra).
  unfold E, excess. fold sg m. fold (B plus). unfold h, slope in Hhx. fold sg m in Hhx.
  pose proof (soft_pos s k x). nra.
Qed.

End Shape.

(** * 6. Step functions *)

(** The value of a step function that is T at first and changes at the given places. *)
Fixpoint lookup (T : Z) (steps : list (Z * Z)) (t : Z) : Z :=
  match steps with [] => T | (x, T') :: rest => if (x <=? t)%Z then lookup T' rest t else T end.

Definition value_at (line : Z * list (Z * Z)) (t : Z) : Z := lookup (fst line) (snd line) t.

Section Steps.

Variable F : R -> R -> R.
Variable top : Z.
Hypothesis F_increasing : forall x plus plus', 0 < x -> plus <= plus' -> F plus x <= F plus' x.

Definition piece (lo hi T : Z) : Prop :=
  ((T <= top)%Z -> forall x, IZR lo <= x <= IZR hi -> 0 < F (IZR T) x) /\
  ((0 < T)%Z -> forall x, IZR lo <= x <= IZR hi -> F (IZR (T - 1)) x <= 0).

Definition tail (lo T : Z) : Prop :=
  ((T <= top)%Z -> forall x, IZR lo <= x -> 0 < F (IZR T) x) /\
  ((0 < T)%Z -> forall x, IZR lo <= x -> F (IZR (T - 1)) x <= 0).

Fixpoint steps_hold (lo T : Z) (steps : list (Z * Z)) : Prop :=
  match steps with
  | [] => tail lo T
  | (x, T') :: rest => piece lo (x - 1) T /\ steps_hold x T' rest
  end.

Lemma threshold_at : forall t T plus, (0 < t)%Z -> (0 <= plus <= top)%Z ->
  ((T <= top)%Z -> 0 < F (IZR T) (IZR t)) -> ((0 < T)%Z -> F (IZR (T - 1)) (IZR t) <= 0) ->
  (0 < F (IZR plus) (IZR t) <-> (T <= plus)%Z).
Proof.
  intros t T plus Ht Hp Hf Hs. apply IZR_lt in Ht. split; intros H.
  - destruct (Z_lt_le_dec plus T) as [Hlt|]; [exfalso | assumption].
    assert (F (IZR plus) (IZR t) <= F (IZR (T - 1)) (IZR t)) by (apply F_increasing; [exact Ht | apply IZR_le; lia]).
    specialize (Hs ltac:(lia)). lra.
  - assert (F (IZR T) (IZR t) <= F (IZR plus) (IZR t)) by (apply F_increasing; [exact Ht | apply IZR_le; exact H]).
    specialize (Hf ltac:(lia)). lra.
Qed.

Lemma steps_correct : forall steps lo T t plus, steps_hold lo T steps -> (lo <= t)%Z -> (0 < t)%Z -> (0 <= plus <= top)%Z ->
  (0 < F (IZR plus) (IZR t) <-> (lookup T steps t <= plus)%Z).
Proof.
  induction steps as [|[x T'] rest IH]; intros lo T t plus Hst Ht Ht0 Hp; simpl in *.
  - destruct Hst as [Hf Hs]. apply threshold_at; try lia; intros H.
    + apply (Hf H). apply IZR_le. lia.
    + apply (Hs H). apply IZR_le. lia.
  - destruct Hst as [[Hf Hs] Hrest]. destruct (Z.leb_spec x t) as [Hx|Hx].
    + apply (IH x); assumption || lia.
    + apply threshold_at; try lia; intros H.
      * apply (Hf H). split; apply IZR_le; lia.
      * apply (Hs H). split; apply IZR_le; lia.
Qed.

End Steps.

(** The greatest of the given places up to t, or lo. *)
Fixpoint floor_in (lo : Z) (places : list Z) (t : Z) : Z :=
  match places with [] => lo | x :: rest => if (x <=? t)%Z then floor_in (Z.max lo x) rest t else floor_in lo rest t end.

Lemma floor_ge : forall places lo t, (lo <= floor_in lo places t)%Z.
Proof.
  induction places as [|x rest IH]; intros lo t; simpl; [lia|].
  destruct (x <=? t)%Z; [specialize (IH (Z.max lo x) t); lia | apply IH].
Qed.

Lemma floor_above : forall places lo t x, In x places -> (x <= t)%Z -> (x <= floor_in lo places t)%Z.
Proof.
  induction places as [|z rest IH]; intros lo t x Hin Hx; simpl in *; [contradiction|].
  destruct Hin as [->|Hin].
  - destruct (Z.leb_spec x t); [|lia]. pose proof (floor_ge rest (Z.max lo x) t). lia.
  - destruct (z <=? t)%Z; apply IH; assumption.
Qed.

Lemma floor_below : forall places lo t, (lo <= t)%Z -> (floor_in lo places t <= t)%Z.
Proof.
  induction places as [|x rest IH]; intros lo t H; simpl; [exact H|].
  destruct (Z.leb_spec x t); apply IH; lia.
Qed.

Lemma floor_member : forall places lo t, In (floor_in lo places t) (lo :: places).
Proof.
  induction places as [|x rest IH]; intros lo t; simpl; [left; reflexivity|].
  destruct (x <=? t)%Z.
  - destruct (IH (Z.max lo x) t) as [H|H]; [|right; right; exact H].
    rewrite <- H. destruct (Z.max_spec lo x) as [[_ ->]|[_ ->]]; auto.
  - destruct (IH lo t) as [H|H]; [left; exact H | right; right; exact H].
Qed.

Lemma lookup_floor : forall steps T lo places t, (lo <= t)%Z ->
  forallb (fun step => existsb (Z.eqb (fst step)) places) steps = true ->
  lookup T steps t = lookup T steps (floor_in lo places t).
Proof.
  induction steps as [|[x T'] rest IH]; intros T lo places t Hlo H; simpl in *; [reflexivity|].
  apply andb_true_iff in H. destruct H as [Hx H]. apply existsb_exists in Hx.
  destruct Hx as [z [Hz E]]. apply Z.eqb_eq in E. subst z.
  pose proof (floor_below places lo t Hlo).
  destruct (Z.leb_spec x t) as [Hxt|Hxt].
  - pose proof (floor_above places lo t x Hz Hxt). destruct (Z.leb_spec x (floor_in lo places t)); [|lia].
    apply IH; assumption.
  - destruct (Z.leb_spec x (floor_in lo places t)); [lia | reflexivity].
Qed.

(** Pieces and tails of a line whose rho is n^s, from signs at the ends. *)
Section Soft_line.

Variables a b c tau s k : R.
Variables y1 yk yd : bool.
Variable top : Z.
Hypothesis Hs : 0 <= s.
Hypothesis Hk : 0 < k.

Definition soft_excess (plus x : R) : R := excess a b c tau (soft s k x) k y1 yk yd plus x.
Definition turning : R := sigma a b c tau y1 yk yd * (s - 1).
Definition drift (plus : R) : R := b * (sign yk + 2 * plus - (k - 1)) + k * (c * sign yd - tau).

Lemma soft_piece : forall lo hi T, (0 < lo)%Z ->
  one_sign a b c tau s k y1 yk yd (IZR lo) (IZR hi) ->
  ((T <= top)%Z -> 0 < soft_excess (IZR T) (IZR lo) /\ 0 < soft_excess (IZR T) (IZR hi)) ->
  ((0 < T)%Z -> soft_excess (IZR (T - 1)) (IZR lo) <= 0 /\ soft_excess (IZR (T - 1)) (IZR hi) <= 0) ->
  piece soft_excess top lo hi T.
Proof.
  intros lo hi T Hlo Ho Hf Hn. apply IZR_lt in Hlo. split; intros HT x Hx.
  - destruct (Hf HT). apply (piece_fires a b c tau s k y1 yk yd Hs Hk (IZR T) (IZR lo) (IZR hi)); assumption.
  - destruct (Hn HT). apply (piece_silent a b c tau s k y1 yk yd Hs Hk (IZR (T - 1)) (IZR lo) (IZR hi)); assumption.
Qed.

Lemma soft_tail_rises : forall lo T, (0 < lo)%Z ->
  0 <= turning -> 0 <= slope a b c tau s k y1 yk yd (IZR lo) ->
  ((T <= top)%Z -> 0 < soft_excess (IZR T) (IZR lo)) ->
  ((0 < T)%Z -> s * sigma a b c tau y1 yk yd <= 0 /\ drift (IZR (T - 1)) <= 0) ->
  tail soft_excess top lo T.
Proof.
  intros lo T Hlo HA Hh Hf Hn. apply IZR_lt in Hlo. split; intros HT x Hx.
  - apply (tail_rises a b c tau s k y1 yk yd Hs Hk (IZR T) (IZR lo)); auto.
  - destruct (Hn HT). apply (tail_rises_and_is_silent a b c tau s k y1 yk yd Hs Hk (IZR (T - 1)) (IZR lo)); assumption.
Qed.

Lemma soft_tail_falls : forall lo T, (0 < lo)%Z ->
  turning <= 0 -> slope a b c tau s k y1 yk yd (IZR lo) <= 0 ->
  ((T <= top)%Z -> 0 < s * sigma a b c tau y1 yk yd /\ 0 <= drift (IZR T)) ->
  ((0 < T)%Z -> soft_excess (IZR (T - 1)) (IZR lo) <= 0) ->
  tail soft_excess top lo T.
Proof.
  intros lo T Hlo HA Hh Hf Hn. apply IZR_lt in Hlo. split; intros HT x Hx.
  - destruct (Hf HT). apply (tail_falls_and_fires a b c tau s k y1 yk yd Hs Hk (IZR T) (IZR lo)); assumption.
  - apply (tail_falls a b c tau s k y1 yk yd Hs Hk (IZR (T - 1)) (IZR lo)); auto.
Qed.

End Soft_line.

(** * 7. From the lines of a certificate to the verdict *)

Definition line := (Z * list (Z * Z))%type.

(** Powers by big integers: Coq's Z takes minutes for thousands of bits, but needs no integers of the processor. *)
Definition fast_power (x e : Z) : Z := BigZ.BigZ.to_Z (BigZ.BigZ.pow (BigZ.BigZ.of_Z x) (BigZ.BigZ.of_Z e)).

Lemma fast_power_eq : forall x e, fast_power x e = (x ^ e)%Z.
Proof. intros x e. unfold fast_power. rewrite BigZ.BigZ.spec_pow, !BigZ.BigZ.spec_of_Z. reflexivity. Qed.

Section Verdict.

Variables k m : nat.
Variables a0 a1 b c tau : R.
Variable score : R -> R.
Hypothesis Hk : (2 <= k)%nat.
Hypothesis Ha0 : 0 <= a0.
Hypothesis Ha1 : 0 <= a1.
Hypothesis Hb : 0 < b.
Hypothesis Hc : 0 < c.
Hypothesis Hscore : forall z, 0 < z -> 0 < score z.

(** rho in the spike's row (true) and in the others, for a label, as a function of a real t. *)
Variable rho : bool -> bool -> R -> R.
Definition amplitude_of (label : bool) : R := if label then a1 else a0.
Hypothesis rho_spike : forall label t, (1 <= t)%nat ->
  spike_ratio k t (amplitude_of label) b c score = rho label true (INR t).
Hypothesis rho_other : forall label t, (1 <= t)%nat ->
  other_ratio k t (amplitude_of label) b c score = rho label false (INR t).

Definition row_excess (label row y1 yd yk : bool) (plus x : R) : R :=
  excess (amplitude_of label) b c tau (rho label row x) (INR k) y1 yk yd plus x.

Variable lines : bool -> bool -> bool -> bool -> bool -> line.
Variable first : Z.
Hypothesis Hfirst : (0 < first)%Z.
Hypothesis lines_hold : forall label row y1 yd yk,
  steps_hold (row_excess label row y1 yd yk) (Z.of_nat (k - 1)) first
    (fst (lines label row y1 yd yk)) (snd (lines label row y1 yd yk)).

Definition least (label : bool) (t : Z) (y1 yd yk : bool) : Z :=
  Z.min (value_at (lines label true y1 yd yk) t) (value_at (lines label false y1 yd yk) t).

Lemma least_is_threshold : forall label t, (first <= Z.of_nat t)%Z ->
  is_threshold k t b c tau score (amplitude_of label) (least label (Z.of_nat t)).
Proof.
  intros label t Ht y1 yd yk plus Hp.
  assert (Ht1 : (1 <= t)%nat) by lia.
  rewrite rho_spike, rho_other by exact Ht1.
  assert (Hmono : forall row x p p', 0 < x -> p <= p' -> row_excess label row y1 yd yk p x <= row_excess label row y1 yd yk p' x).
  { intros row x p p' Hx Hpp. unfold row_excess, excess.
    assert (x * (b * p) <= x * (b * p')); [|nra].
    apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; lra. }
  pose proof (fun row => steps_correct _ _ (Hmono row) _ _ _ (Z.of_nat t) plus (lines_hold label row y1 yd yk) Ht
                ltac:(lia) Hp) as H.
  unfold row_excess in H. rewrite <- INR_IZR_INZ in H.
  rewrite (H true), (H false). unfold least, value_at. lia.
Qed.

Variable places : list Z.
Hypothesis places_hold : forall label row y1 yd yk,
  forallb (fun step => existsb (Z.eqb (fst step)) places) (snd (lines label row y1 yd yk)) = true.

Definition row := binomials (k - 1).

Variable raise : Z -> Z -> Z.
Hypothesis raise_eq : forall x e, raise x e = (x ^ e)%Z.

(** Numerators of P and of P(fires on both) at t; the denominator is 2^((k+2) m). The row is an argument so that it is
    computed once. *)
Definition denominator : Z := (raise (2 ^ Z.of_nat (S (S k))) (Z.of_nat m))%Z.

Definition numerator (r : list Z) (t : Z) : Z :=
  (raise (silent_in_one r (least false t)) (Z.of_nat m)
   - raise (silent_in_both r (least false t) (least true t)) (Z.of_nat m))%Z.

Definition numerator_of_both (r : list Z) (t : Z) : Z :=
  (denominator - raise (silent_in_one r (least false t)) (Z.of_nat m)
   - raise (silent_in_one r (least true t)) (Z.of_nat m)
   + raise (silent_in_both r (least false t) (least true t)) (Z.of_nat m))%Z.

Lemma number_ext : forall r p q, (forall y1 yd yk plus, p y1 yd yk plus = q y1 yd yk plus) -> number r p = number r q.
Proof.
  intros r p q H.
  assert (E : forall y1 yd yk l i, sum_where (p y1 yd yk) i l = sum_where (q y1 yd yk) i l).
  { intros y1 yd yk l. induction l as [|x l IH]; intros i; simpl; [reflexivity|]. rewrite H, IH. reflexivity. }
  unfold number. rewrite !E. reflexivity.
Qed.

Lemma numerators_floor : forall r t, (first <= t)%Z ->
  numerator r t = numerator r (floor_in first places t) /\
  numerator_of_both r t = numerator_of_both r (floor_in first places t).
Proof.
  intros r t Ht.
  assert (E : forall label y1 yd yk, least label t y1 yd yk = least label (floor_in first places t) y1 yd yk).
  { intros label y1 yd yk. unfold least, value_at.
    rewrite <- !(lookup_floor _ _ first places t Ht) by apply places_hold. reflexivity. }
  assert (E1 : forall label, silent_in_one r (least label t) = silent_in_one r (least label (floor_in first places t))).
  { intros label. apply number_ext. intros. unfold silent. cbv zeta. rewrite E. reflexivity. }
  assert (E2 : silent_in_both r (least false t) (least true t)
    = silent_in_both r (least false (floor_in first places t)) (least true (floor_in first places t))).
  { apply number_ext. intros. unfold silent. cbv zeta beta. rewrite !E. reflexivity. }
  unfold numerator, numerator_of_both. rewrite !E1, E2. split; reflexivity.
Qed.

Lemma denominator_pos : 0 < IZR denominator.
Proof. apply IZR_lt. unfold denominator. rewrite raise_eq. apply Z.pow_pos_nonneg; [apply Z.pow_pos_nonneg|]; lia. Qed.

(** A property of the numerators at each place holds at every t. *)
Lemma at_every_t : forall good : Z -> Z -> bool,
  (fun r => forallb (fun t => good (numerator r t) (numerator_of_both r t)) (first :: places)) row = true ->
  forall t, (first <= Z.of_nat t)%Z -> exists p q, good p q = true /\
  probability k b c tau score a0 a1 m t = IZR p / IZR denominator /\
  probability_of_both k b c tau score a0 a1 m t = IZR q / IZR denominator.
Proof.
  intros good H t Ht. cbv beta in H. assert (Ht1 : (1 <= t)%nat) by lia.
  exists (numerator row (Z.of_nat t)), (numerator_of_both row (Z.of_nat t)). split; [|split].
  - destruct (numerators_floor row (Z.of_nat t) Ht) as [-> ->].
    rewrite forallb_forall in H. apply H, floor_member.
  - unfold numerator, denominator. rewrite !raise_eq.
    apply (probability_eq k t m a0 a1 b c tau score Hk Ht1 Ha0 Ha1 Hb Hc Hscore _ _
             (least_is_threshold false t Ht) (least_is_threshold true t Ht)).
  - unfold numerator_of_both, denominator. rewrite !raise_eq.
    apply (probability_of_both_eq k t m a0 a1 b c tau score Hk Ht1 Ha0 Ha1 Hb Hc Hscore _ _
             (least_is_threshold false t Ht) (least_is_threshold true t Ht)).
Qed.

End Verdict.

Lemma quotient_le : forall p d top bottom, (0 < d)%Z -> (0 < bottom)%Z ->
  (bottom * p <= top * d)%Z -> IZR p / IZR d <= IZR top / IZR bottom.
Proof.
  intros p d top bottom Hd Hb H. apply IZR_lt in Hd, Hb. apply IZR_le in H. rewrite !mult_IZR in H.
  apply (Rmult_le_reg_r (IZR d)); [exact Hd|]. apply (Rmult_le_reg_l (IZR bottom)); [exact Hb|].
  replace (IZR bottom * (IZR p / IZR d * IZR d)) with (IZR bottom * IZR p) by (field; lra).
  replace (IZR bottom * (IZR top / IZR bottom * IZR d)) with (IZR top * IZR d) by (field; lra). exact H.
Qed.

Lemma quotient_lt : forall p d top bottom, (0 < d)%Z -> (0 < bottom)%Z ->
  (bottom * p < top * d)%Z -> IZR p / IZR d < IZR top / IZR bottom.
Proof.
  intros p d top bottom Hd Hb H. apply IZR_lt in Hd, Hb, H. rewrite !mult_IZR in H.
  apply (Rmult_lt_reg_r (IZR d)); [exact Hd|]. apply (Rmult_lt_reg_l (IZR bottom)); [exact Hb|].
  replace (IZR bottom * (IZR p / IZR d * IZR d)) with (IZR bottom * IZR p) by (field; lra).
  replace (IZR bottom * (IZR top / IZR bottom * IZR d)) with (IZR top * IZR d) by (field; lra). exact H.
Qed.

Lemma quotient_ge : forall p d top bottom, (0 < d)%Z -> (0 < bottom)%Z ->
  (top * d <= bottom * p)%Z -> IZR top / IZR bottom <= IZR p / IZR d.
Proof. intros p d top bottom Hd Hb H. apply quotient_le; try assumption. lia. Qed.

Lemma quotient_gt : forall p d top bottom, (0 < d)%Z -> (0 < bottom)%Z ->
  (top * d < bottom * p)%Z -> IZR top / IZR bottom < IZR p / IZR d.
Proof. intros p d top bottom Hd Hb H. apply quotient_lt; try assumption. lia. Qed.

(** The comparisons that the verdicts consist of, for delta = top / bottom. *)
Definition good_distinguishes (top bottom d p q : Z) : bool := ((bottom - top) * d <=? bottom * p)%Z.
Definition good_blind (top bottom d p q : Z) : bool := ((bottom * p <=? top * d) && (2 * q <? 1 * d))%Z.
Definition good_saturated (top bottom d p q : Z) : bool := ((bottom * p <=? top * d) && (1 * d <=? 2 * q))%Z.
Definition good_partial (top bottom d p q : Z) : bool := ((top * d <? bottom * p) && (bottom * p <? (bottom - top) * d))%Z.

(** * 8. Scores *)

(** Linear attention is power 1. *)
Definition softmax (temperature z : R) : R := exp (z / temperature).
Definition power (beta : nat) (z : R) : R := z ^ beta.

Lemma softmax_pos : forall temperature z, 0 < z -> 0 < softmax temperature z.
Proof. intros. apply exp_pos. Qed.

Lemma power_pos : forall beta z, 0 < z -> 0 < power beta z.
Proof. intros. apply pow_lt. assumption. Qed.

Lemma softmax_ratio : forall temperature r R1 R2 k t, 0 < temperature ->
  softmax temperature (r * R1 * ln (INR (k * t))) / softmax temperature (r * R2 * ln (INR (k * t)))
  = soft (r * (R1 - R2) / temperature) (INR k) (INR t).
Proof.
  intros temperature r R1 R2 k t HT. unfold softmax, soft. rewrite mult_INR.
  unfold Rdiv at 1. rewrite <- exp_Ropp, <- exp_plus. f_equal. field. lra.
Qed.

Lemma power_ratio : forall beta r R1 R2 l, 0 < r -> 0 < R2 -> 0 < l ->
  power beta (r * R1 * l) / power beta (r * R2 * l) = (R1 / R2) ^ beta.
Proof.
  intros beta r R1 R2 l Hr HR Hl. unfold power.
  replace (r * R1 * l) with ((R1 / R2) * (r * R2 * l)) by (field; lra).
  rewrite Rpow_mult_distr. field. apply pow_nonzero.
  assert (0 < r * R2 * l) by (repeat apply Rmult_lt_0_compat; assumption). lra.
Qed.
