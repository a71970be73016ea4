"""Which judge a scorer asks: a model of Inspect's, found when it scores, or one that goes past Inspect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from inspect_ai.model import GenerateConfig, Model, get_model, model_roles

from geval_adapters import Answer, Comparer, GEval, InputError, Judge

from .model import InspectJudge

Asks = TypeVar("Asks", bound=GEval | Comparer)


class Asked(Generic[Asks]):
    """What asks a judge, made when it is asked: which model has a role is known only while Inspect evaluates.

    Args:
        make: makes it for a judge.
        model, model_role, judge, config: as for `geval`.

    Raises:
        InputError: two judges were named; from `make`.
    """

    def __init__(
        self,
        make: Callable[[str | Judge], Asks],
        model: str | Model | None,
        model_role: str,
        judge: str | Judge | None,
        config: GenerateConfig | Mapping[str, Any] | None,
    ) -> None:
        if judge is not None and (model is not None or config is not None):
            raise InputError("judge= goes past Inspect's models: model= and config= do not belong to it")
        self._make, self._model, self._role = make, model, model_role
        self._config = config if config is None or isinstance(config, GenerateConfig) else GenerateConfig(**config)
        self._made: dict[Model, Asks] = {}
        self._only: Asks | None = make(judge) if judge is not None else None
        if judge is None:
            make(_Nobody())  # what is wrong with the criterion or an option is said at once

    def here(self) -> Asks:
        """What asks the model that is the judge where this is called.

        Raises:
            InputError: several models have the role.
            PrerequisiteError: none has.
        """
        if self._only is not None:
            return self._only
        if self._model is None and isinstance(model_roles().get(self._role), list):
            raise InputError(f"several models have the role {self._role}: use a scorer with model= for each of them")
        model = get_model(self._model) if self._model else get_model(role=self._role, required=True)
        if model not in self._made:
            self._made[model] = self._make(InspectJudge(model, self._config))
        return self._made[model]


class _Nobody(Judge):
    """Stands in for a judge that is not known yet; it is never asked."""

    name = "not known yet"

    async def ask(self, messages: Sequence[Mapping[str, str]], **_: Any) -> Answer:
        raise AssertionError
