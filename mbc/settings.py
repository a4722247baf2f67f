"""Settings of a pipeline apart from the base condition: which runs, and what is made of them."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from mbc.conditions import BASE_KEYS, Condition, Count, Positive, Seed, parse

TRANSFER_PREFIX = "transfer_"

Fraction = Annotated[float, Field(gt=0, lt=1)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class TransitionSettings(_Section):
    """How the moments of a run are read off its history."""

    tau_fraction: Fraction = Field(description="tau: candidate loss below this fraction of log k")
    onset_gap: Positive = Field(description="onset: z-gap above this, in nats")
    onset_evaluations: Count = Field(description="onset: in this many evaluations in a row")
    loss_onset_fraction: Fraction = Field(description="loss onset: below this fraction of log k")
    end_fraction: Fraction = Field(description="end of transition: below this fraction of log k")
    character_fraction: Fraction = Field(
        description="character tau: mean loss by character below this fraction of log 36"
    )
    plateau_window: Annotated[list[Fraction], Field(min_length=2, max_length=2)] = Field(
        description="the plateau is measured between these fractions of tau"
    )
    marginal_ratio: Positive = Field(
        description="marginal learned: joint loss below this times log k"
    )
    marginal_mass: Fraction = Field(description="marginal learned: mass on the fibre above this")
    marginal_b_gap: Positive = Field(description="marginal learned: B-gap above this, in nats")

    @model_validator(mode="after")
    def _check(self):
        if self.plateau_window[0] >= self.plateau_window[1]:
            raise ValueError(f"plateau_window is {self.plateau_window}: it must rise.")
        if not self.end_fraction < self.loss_onset_fraction:
            raise ValueError(
                f"end_fraction is {self.end_fraction}: it must be below loss_onset_fraction "
                f"{self.loss_onset_fraction}."
            )
        return self


class ScalingSettings(_Section):
    """How scaling laws are fitted."""

    thresholds: Annotated[list[Fraction], Field(min_length=1)] = Field(
        description="fractions of log k at which the scaling exponent is fitted as well"
    )
    confidence: Fraction = Field(description="coverage of the intervals")
    resamples: Annotated[int, Field(ge=100)] = Field(description="bootstrap resamples")
    bootstrap_seed: Seed = Field(description="seed of the resampling")
    equivalence_margin: Positive = Field(
        description="an exponent of k within this margin of 0 counts as no effect"
    )

    @model_validator(mode="after")
    def _check(self):
        if len(set(self.thresholds)) < len(self.thresholds):
            raise ValueError(f"thresholds is {self.thresholds}: a value stands twice.")
        return self


class Sweep(_Section):
    """A query over the runs: equal to the base condition in everything but ``vary``.

    ``dataset_sizes`` asks further that n_b is one of these sizes (times the scale) divided by k.
    """

    vary: Annotated[list[Literal[BASE_KEYS]], Field(min_length=1)]
    dataset_sizes: list[Count] = []


class Sweeps(_Section):
    """The sweeps that are evaluated."""

    dataset_size: Sweep
    fixed_size: Sweep
    batch_size: Sweep
    learning_rate: Sweep
    label_noise: Sweep
    direction: Sweep
    linear: Sweep
    structured: Sweep
    schedule: Sweep
    initialisation: Sweep


class MechanismSettings(_Section):
    """Which runs keep checkpoints, and how these are analysed (sections 3.3, 3.4, 4 and 6)."""

    conditions: Annotated[list[str], Field(min_length=1)] = Field(
        description="conditions that are looked into"
    )
    gradient_noise: Annotated[list[str], Field(min_length=1)] = Field(
        description="conditions whose gradient noise is measured"
    )
    checkpoint_every: Count = Field(description="steps between two checkpoints, times the scale")
    stop_after: Annotated[float, Field(ge=1, allow_inf_nan=False)] = Field(
        description="these runs go on to this multiple of their waiting time, if it is more"
    )
    fractions: Annotated[list[Positive], Field(min_length=1)] = Field(
        description="checkpoints are chosen at these fractions of tau, and the last one"
    )
    groups: Count = Field(description="base strings whose accuracy is followed")
    ablation_examples: Annotated[int, Field(ge=2)] = Field(
        description="examples on which heads are ablated"
    )
    displacement_steps: Count = Field(
        description="steps of one displacement, times the scale; a multiple of checkpoint_every"
    )
    curvature_examples: Annotated[int, Field(ge=2)] = Field(
        description="examples in each of two samples; at most half of the dataset"
    )
    curvature_products: Annotated[int, Field(ge=10)] = Field(
        description="most Hessian-vector products for one pair of eigenvalues"
    )
    noise_batches: Annotated[int, Field(ge=4)] = Field(
        description="mini-batch gradients from which the covariance is estimated"
    )
    noise_batch_sizes: Annotated[list[Count], Field(min_length=1)] = Field(
        description="batch sizes at which it is measured"
    )

    @model_validator(mode="after")
    def _check(self):
        if self.displacement_steps % self.checkpoint_every:
            raise ValueError(
                f"displacement_steps is {self.displacement_steps}: not a multiple of "
                f"checkpoint_every {self.checkpoint_every}."
            )
        return self

    @property
    def followed(self) -> list[str]:
        """The conditions that keep checkpoints."""
        return list(dict.fromkeys([*self.conditions, *self.gradient_noise]))


NOISE_SWEEPS = {"batch_size": "batch_size", "learning_rate": "lr", "label_noise": "label_noise"}
"""Sweeps that change gradient noise, and the column of the table of runs that each varies."""


class Settings(_Section):
    """Everything in params.yaml but the base condition."""

    scale: Positive = Field(description="factor on every n_b, max_steps and warmup_steps")
    seeds: Annotated[list[Seed], Field(min_length=1)] = Field(description="seeds of every run")
    conditions: dict[str, dict | None] = Field(description="named changes to the base condition")
    transfers: list[str] = Field(description="conditions trained again from their forward run")
    sweeps: Sweeps
    transition: TransitionSettings
    scaling: ScalingSettings
    mechanism: MechanismSettings

    @model_validator(mode="after")
    def _check(self):
        twice = [seed for seed in self.seeds if self.seeds.count(seed) > 1]
        if twice:
            raise ValueError(f"seeds is {self.seeds}: {twice[0]} stands twice.")
        if "base" not in self.conditions or self.conditions["base"]:
            raise ValueError("conditions.base must be there and change nothing: it is the base.")
        for name in self.transfers:
            if self.transfers.count(name) > 1:
                raise ValueError(f"transfers is {self.transfers}: {name} stands twice.")
            for needed in (name, f"forward_{name}"):
                if needed not in self.conditions:
                    raise ValueError(f"transfers names {name}: there is no conditions.{needed}.")
        for name in self.mechanism.followed:
            if name not in self.conditions:
                raise ValueError(f"mechanism names {name}: there is no conditions.{name}.")
        for name in self.conditions:
            if name.startswith(TRANSFER_PREFIX):
                raise ValueError(f"conditions.{name}: names with {TRANSFER_PREFIX} are transfers'.")
        return self


def with_checkpoints(
    conditions: dict[str, Condition], settings: MechanismSettings, scale: float
) -> dict[str, Condition]:
    """Return the conditions, those that are looked into with checkpoints and a later end.

    Raises:
        ValueError: if one of them has no selector to route, or no attention heads.
    """
    changed = dict(conditions)
    for name in settings.followed:
        condition = conditions[name]
        needed = {"network": "transformer", "direction": "backward"}
        for key, value in needed.items():
            if getattr(condition, key) != value:
                raise ValueError(
                    f"mechanism names {name}: its {key} is {getattr(condition, key)!r}, only "
                    f"{value!r} can be looked into."
                )
        if condition.k == 1:
            raise ValueError(
                f"mechanism names {name}: its k is 1, so it has no plateau to be looked into; "
                "take it out of mechanism.conditions and mechanism.gradient_noise."
            )
        every = max(1, round(settings.checkpoint_every * scale))
        changes: dict = {"checkpoint_every": every}
        if name in settings.conditions:
            changes["stop_after"] = max(condition.stop_after, settings.stop_after)
        changed[name] = condition.model_copy(update=changes)
    return changed


def check_settings(values: dict) -> Settings:
    """Return the validated settings.

    Raises:
        ValueError: one sentence that names the parameter, its value and what is allowed.
    """
    known = (*BASE_KEYS, *Settings.model_fields)
    unknown = [key for key in values if key not in Settings.model_fields]
    if unknown:
        raise ValueError(f"{unknown[0]} is not a parameter; known are {', '.join(known)}.")
    for name in filter(values.__contains__, _SECTIONS):
        _check_section(_SECTIONS[name], values[name], name)
    return parse(Settings, values)


_SECTIONS: dict[str, type[_Section]] = {
    "sweeps": Sweeps,
    "transition": TransitionSettings,
    "scaling": ScalingSettings,
    "mechanism": MechanismSettings,
}


def _check_section(section: type[_Section], values: dict, where: str) -> None:
    """Refuse a bad value inside a section by its full name, which `parse` of the whole loses."""
    if not isinstance(values, dict):
        known = ", ".join(section.model_fields)
        raise ValueError(f"{where} is {values!r}: expected a mapping with the parameters {known}.")
    for name, field in section.model_fields.items():
        if field.annotation is Sweep and name in values:
            _check_section(Sweep, values[name], f"{where}.{name}")
    parse(section, values, where)
