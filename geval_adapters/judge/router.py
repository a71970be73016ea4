"""Several deployments under one name, from a file as LiteLLM's proxy has it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import InputError
from .secrets import keep_secrets_in, without_keys


@dataclass(frozen=True)
class Router:
    """Deployments for LiteLLM's `Router`.

    Attributes:
        name: what a signature calls it: the group that is asked, and a digest of the groups' models and the settings.
        group: which of the groups is asked.
        models: the LiteLLM strings behind all groups: any of them may answer, where fallbacks lead to it.
        settings: arguments of `litellm.Router`. They hold keys.
    """

    name: str
    group: str
    models: list[str]
    settings: dict[str, Any] = field(repr=False)

    def without_keys(self) -> Router:
        """The same router, its keys left to the environment; `os.environ/NAME` names one there and stays."""
        return replace(self, settings=without_keys(self.settings))


def read_router(path: str | Path, group: str | None) -> Router:
    """The deployments in a YAML or JSON file, as LiteLLM's proxy has them: `model_list` and `router_settings`.

    Raises:
        InputError: the file cannot be read, or has no such group.
    """
    import yaml

    try:
        told = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        deployments = [(each["model_name"], each["litellm_params"]["model"]) for each in told["model_list"]]
        settings = dict(told.get("router_settings") or {})
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise InputError(
            f"{path}: is no router file: it needs model_list, each entry with model_name and litellm_params.model"
        ) from None
    groups = list(dict.fromkeys(name for name, _ in deployments))
    if not groups or group not in (None, *groups):
        raise InputError(f"{path}: has no model_name {group!r}, but {', '.join(groups) or 'none'}")
    chosen = group or groups[0]
    keep_secrets_in(told)
    digest = hashlib.sha256(json.dumps([deployments, settings.get("fallbacks")], default=str).encode()).hexdigest()[:8]
    models = list(dict.fromkeys(model for _, model in deployments))
    return Router(f"router/{chosen}@{digest}", chosen, models, settings | {"model_list": told["model_list"]})
