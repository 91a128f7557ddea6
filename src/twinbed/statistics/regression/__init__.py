"""Linear regression: formula, design matrix, least squares and what says whether its numbers can be trusted."""
