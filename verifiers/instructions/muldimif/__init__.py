"""The constraints of MulDimIF (Ye et al. 2025), which say in free text what they want, by family."""
