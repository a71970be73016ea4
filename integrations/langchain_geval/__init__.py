"""G-Eval for LangChain and LangSmith."""
