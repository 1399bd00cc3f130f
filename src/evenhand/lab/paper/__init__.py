"""The paper's own: its experiments, figures, claims and numbers, and what stands beside them."""
