"""Items of FROM that are computed for each row: generators, table functions, VALUES."""
