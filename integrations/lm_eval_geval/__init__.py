"""G-Eval for lm-evaluation-harness."""
