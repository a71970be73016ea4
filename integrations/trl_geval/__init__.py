"""G-Eval as a reward function, for TRL and for whatever else calls `(prompts, completions, **columns)`."""

from .rewards import AsyncReward, GEvalReward, GroupReward

__all__ = ["AsyncReward", "GEvalReward", "GroupReward"]
