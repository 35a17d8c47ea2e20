"""Report cards and the atlas: the results of mechanisms on constructions; pictures of constructions."""
