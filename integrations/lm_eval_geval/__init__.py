"""G-Eval for lm-evaluation-harness: tasks that test a judge, and a metric that is one."""
