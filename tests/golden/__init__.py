"""Results of version 0.1.0.dev0 before its packages were reorganised; they must stay the same."""
