"""Several deployments under one name, from a file as LiteLLM's proxy has it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import InputError, checked
from ..settings_file import read_yaml
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


@dataclass(frozen=True)
class Target:
    """Which model a deployment is; whatever else stands there is LiteLLM's."""

    model: str


@dataclass(frozen=True)
class Deployment:
    """One entry of a router file's `model_list`."""

    model_name: str
    litellm_params: Target


@dataclass(frozen=True)
class RouterFile:
    """What a router file must hold."""

    model_list: tuple[Deployment, ...]
    router_settings: dict[str, Any] | None = None


def read_router(path: str | Path, group: str | None) -> Router:
    """The deployments in a YAML or JSON file, as LiteLLM's proxy has them: `model_list` and `router_settings`.

    Raises:
        InputError: the file cannot be read, or has no such group.
    """
    data = read_yaml(Path(path))
    keep_secrets_in(data)
    file = checked(RouterFile, without_keys(data), str(path))
    deployments = [(each.model_name, each.litellm_params.model) for each in file.model_list]
    settings = data.get("router_settings") or {}
    groups = list(dict.fromkeys(name for name, _ in deployments))
    if not groups or group not in (None, *groups):
        raise InputError(f"{path}: has no model_name {group!r}, but {', '.join(groups) or 'none'}")
    chosen = group or groups[0]
    digest = hashlib.sha256(json.dumps([deployments, settings.get("fallbacks")], default=str).encode()).hexdigest()[:8]
    models = list(dict.fromkeys(model for _, model in deployments))
    return Router(f"router/{chosen}@{digest}", chosen, models, settings | {"model_list": data["model_list"]})
