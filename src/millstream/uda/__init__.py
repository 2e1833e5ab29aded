"""User-defined aggregates: from the checked form of a body to a program that kernels run."""
