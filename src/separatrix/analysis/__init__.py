"""What follows from verdicts: maps, laws, costs, cards, choices, searches, training evidence."""
