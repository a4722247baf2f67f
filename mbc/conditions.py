"""A condition: what a run is trained on and how."""

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from mbc.task import Direction, Fibre, check_map_request

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


class Condition(BaseModel):
    """One training condition; together with a seed it fixes a run."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    fibre: Fibre = Field(description="how the k targets of a base string are drawn")
    direction: Direction = Field(description="backward: (B, z) -> A; forward: A -> B")
    k: Count = Field(description="targets in each fibre")
    n_b: Count = Field(description="number of base strings; D = n_b * k")
    label_noise: Share = Field(description="probability of a target drawn from the same fibre")
    network: Literal["transformer", "linear"] = Field(description="see mbc.network.network_of")
    n_layers: Count = Field(description="layers of the transformer")
    d_model: Count = Field(description="width of the residual stream, of an embedding")
    n_heads: Count = Field(description="attention heads in each layer")
    d_mlp: Count = Field(description="width of each MLP, of the linear network's middle")
    initialisation: Literal["paper", "scaled"] = Field(description="see mbc.bridge.build_model")
    precision: Literal["float32", "bfloat16"] = Field(description="see mbc.network.network_of")
    lr: Positive = Field(description="learning rate (peak, with a schedule)")
    weight_decay: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        description="decoupled weight decay of AdamW"
    )
    batch_size: Count = Field(description="examples in a batch")
    schedule: Literal["constant", "cosine"] = Field(description="see mbc.training.learning_rate")
    warmup_steps: Annotated[int, Field(ge=0)] = Field(description="steps of linear warm-up")
    max_steps: Count = Field(description="step budget; a run that needs more is censored")
    stop_after: Annotated[float, Field(ge=1, allow_inf_nan=False)] = Field(
        description="a run ends at this multiple of its waiting time"
    )
    eval_every: Count = Field(description="most steps between two evaluations, cost permitting")
    eval_examples: Annotated[int, Field(ge=2)] = Field(
        description="most examples in an evaluation; small datasets take fewer"
    )
    checkpoint_every: Annotated[int, Field(ge=0)] = Field(
        default=0, description="steps between two checkpoints; 0: none but the last weights"
    )

    @property
    def dataset_size(self) -> int:
        """Number of examples, D = n_b * k."""
        return self.n_b * self.k

    @model_validator(mode="after")
    def _check_combinations(self):
        check_map_request(self.k, self.n_b, self.fibre)
        if self.batch_size > self.dataset_size:
            raise ValueError(
                f"batch_size is {self.batch_size}, but the dataset has only "
                f"n_b * k = {self.dataset_size} examples."
            )
        if self.d_model % self.n_heads:
            raise ValueError(
                f"d_model is {self.d_model}: not a multiple of n_heads {self.n_heads}."
            )
        if self.direction == "forward" and self.label_noise > 0:
            raise ValueError(
                f"label_noise is {self.label_noise}: noise within a fibre exists only for "
                "direction 'backward'."
            )
        if self.warmup_steps and self.schedule == "constant":
            raise ValueError(
                f"warmup_steps is {self.warmup_steps}: schedule 'constant' has no warm-up."
            )
        if self.warmup_steps > self.max_steps:
            raise ValueError(
                f"warmup_steps is {self.warmup_steps}: longer than max_steps {self.max_steps}."
            )
        return self


Model = TypeVar("Model", bound=BaseModel)

MAP_KEYS = ("fibre", "k", "n_b")
"""The keys of a condition that decide its map."""

NETWORK_KEYS = (
    *("direction", "fibre", "network", "n_layers", "d_model", "n_heads", "d_mlp"),
    "initialisation",
)
"""The keys of a condition that decide its initial weights."""

BASE_KEYS = tuple(key for key in Condition.model_fields if key != "checkpoint_every")
"""The keys of a condition that stand at the top level of params.yaml, for the base condition."""

RECORDING_KEYS = ("stop_after", "eval_every", "eval_examples")
"""The keys that decide how long and how closely a run is followed, not how it is trained."""


def in_full_precision(condition: Condition) -> Condition:
    """Return the condition with all products in float32, as analyses take them."""
    return condition.model_copy(update={"precision": "float32"})


def run_name(condition: str, seed: int) -> str:
    """Return the name of a run, as in its stage ``train@<run>`` and its folder."""
    return f"{condition}-{seed}"


def parse(
    model: type[Model], values: dict, where: str = "", own_keys: set[str] | None = None
) -> Model:
    """Build a validated model, or refuse with one sentence.

    Args:
        model: what to build.
        values: its fields.
        where: prefix of the keys in messages, such as ``transition``.
        own_keys: the keys that stand under ``where``; the others stand at the top level.

    Raises:
        ValueError: names the first bad key, its value and what is allowed.
    """
    try:
        return model(**values)
    except ValidationError as error:
        first = error.errors()[0]
    except TypeError:
        raise ValueError(f"{where or 'parameters'}: every key must be a word.") from None
    key = ".".join(map(str, first["loc"]))
    inherited = own_keys is not None and first["loc"] and first["loc"][0] not in own_keys
    place = key if inherited else ".".join(filter(None, (where, key)))
    if first["type"] == "extra_forbidden":
        raise ValueError(f"{place} is not a parameter; known are {', '.join(model.model_fields)}.")
    if first["type"] == "missing":
        raise ValueError(f"{place} is missing.")
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        raise ValueError(f"{where}: {message}" if where else message)
    raise ValueError(f"{place} is {first['input']!r}: {_lower_first(message)}.")


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
