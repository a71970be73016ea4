"""The task files for lm-evaluation-harness: no code, but a package, which the entry point `lm_eval.tasks` names."""
