"""Code generation: from the typed representation to the source of programs."""
