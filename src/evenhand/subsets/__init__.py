"""Sets of one size: listed, counted, drawn before an arm."""
