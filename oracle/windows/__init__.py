"""Windows by the papers' definitions, as pure functions, a file for each kind."""
