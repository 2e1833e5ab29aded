"""From plans to DataFrames: scans, stateless operators, shared scans."""
