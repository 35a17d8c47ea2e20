"""What training shows, and what it does not: the protocol, intervals, and a sentence for each mechanism."""
