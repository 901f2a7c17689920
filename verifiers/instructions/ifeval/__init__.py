"""The 25 constraints of IFEval (Zhou et al. 2023), by family."""
