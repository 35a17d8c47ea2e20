"""Pages, figures and tables: the paper's theorem, maps, cards, the atlas, what is in a store."""
