"""Benchmarks: what the budgets are about, measured beside a baseline in the same run."""
