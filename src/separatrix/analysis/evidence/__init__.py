"""Evidence from training: the protocol, statistics over seeds, conclusions, reports and ledgers."""
