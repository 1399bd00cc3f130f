"""Speed, in ratios measured in one run."""
