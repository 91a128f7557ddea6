"""Linear regression: formula, design matrix, least squares and the checks of its assumptions."""
