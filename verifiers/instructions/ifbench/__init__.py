"""The 58 constraints of IFBench (Pyatkin et al. 2025), by family."""
