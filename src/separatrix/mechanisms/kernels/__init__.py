"""Scores that are a scalar function of the logit <q,k>, and of how many keys there are."""
