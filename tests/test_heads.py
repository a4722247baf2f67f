import json
import math
from dataclasses import asdict

import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

from mbc.attention import attention_to_z, bridge_with, draw_sequences
from mbc.evaluation import draw_sample, evaluate
from mbc.heads import (
    SAMPLE_TOKENS,
    ablate_heads,
    ablation,
    ablation_sample,
    all_heads,
    head_means,
    leading_head,
    only,
)
from mbc.model import Segment
from mbc.network import network_of
from mbc.task import draw_map, sequences, to_strings
from mbc.training import batch_loss, training_tree
from stages import heads
from stages.files import checkpoint_name, read_json, write_json, write_yaml
from stages.followed_run import write_analysis
from tests.conftest import CPU, initial

SELECTING = (0, 2)


@pytest.fixture(scope="module")
def condition(make_condition):
    return make_condition(n_layers=2, n_heads=4, k=3, n_b=8, batch_size=24)


@pytest.fixture(scope="module")
def data(condition):
    return sequences(draw_map(condition.k, condition.n_b, condition.fibre, 0), "backward")


@pytest.fixture(scope="module")
def random_weights(condition):
    """Weights far from 0, biases included, so that every head matters."""
    generator = torch.Generator().manual_seed(1)
    return {
        name: weight + 0.3 * torch.randn(weight.shape, generator=generator)
        for name, weight in initial(condition, seed=1).items()
    }


@pytest.fixture(scope="module")
def planted(condition, data):
    """Trained weights of a network in which one head alone can carry anything between tokens."""
    weights = {name: w.clone().requires_grad_() for name, w in initial(condition).items()}
    network = network_of(condition, weights)
    optimizer = torch.optim.Adam(weights.values(), lr=1e-2)
    batch = torch.arange(len(data.tokens)).numpy()
    tree, answers = training_tree(data, batch, batch, CPU)
    layer, head = SELECTING
    d_head = condition.d_model // condition.n_heads
    mask = torch.zeros(condition.d_model)
    mask[head * d_head : (head + 1) * d_head] = 1
    masks = [mask if at == layer else 0 * mask for at in range(condition.n_layers)]
    for _ in range(120):
        with torch.no_grad():
            for at, kept in enumerate(masks):
                weights[f"layers.{at}.attn.o.weight"].mul_(kept)
        loss = batch_loss(network, tree, answers)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    trained = {name: weight.detach() for name, weight in weights.items()}
    for at, kept in enumerate(masks):
        trained[f"layers.{at}.attn.o.weight"] *= kept
    return trained


@pytest.fixture(scope="module")
def sample(data):
    return draw_sample(data, 24, 0, CPU)


@pytest.fixture(scope="module")
def planted_ablation(condition, planted, sample):
    return ablate_heads(condition, planted, sample)


@pytest.mark.parametrize("kind", ["zero", "mean"])
def test_the_planted_head_is_found_and_no_other_has_any_effect(planted_ablation, kind):
    intact, found = planted_ablation.intact, getattr(planted_ablation, kind)
    assert intact.candidate_loss < 0.3 < 0.5 < intact.z_gap
    leading = found.leading
    assert (leading.verdict, leading.layer, leading.head) == ("leader", *SELECTING)
    assert leading.in_first_layer
    assert leading.tied == ()
    assert leading.share == 1
    assert (leading.second_rise, leading.ratio) == (0, None)
    assert leading.difference == leading.rise > 0.5
    effects = {(effect.layer, effect.head): effect for effect in found.without}
    own = effects.pop(SELECTING)
    assert own.candidate_loss_rise == pytest.approx(leading.rise)
    assert own.z_gap_fall == intact.z_gap
    assert own.z_gap_string_fall == intact.z_gap_string
    assert own.first_character_rise > 0.5
    assert own.joint_loss_rise > own.first_character_rise / 2
    assert len(effects) == 7
    for effect in effects.values():
        measured = [
            value for name, value in asdict(effect).items() if name not in ("layer", "head")
        ]
        assert measured == [0] * 6


@pytest.mark.parametrize("kind", ["zero", "mean"])
def test_the_planted_head_suffices_and_no_other_does(planted_ablation, kind):
    intact, found = planted_ablation.intact, getattr(planted_ablation, kind)
    for remaining in (found.only_in_first_layer, found.only_in_network):
        assert [(left.layer, left.head) for left in remaining] == [(0, head) for head in range(4)]
        for left in remaining:
            suffices = (left.layer, left.head) == SELECTING
            assert (left.z_gap == intact.z_gap) == suffices
            assert (left.candidate_loss == intact.candidate_loss) == suffices
            assert suffices or left.z_gap == left.z_gap_string == 0
    for nothing in (found.no_first_layer, found.no_heads):
        assert nothing.z_gap == 0
        assert nothing.candidate_loss > intact.candidate_loss + 0.5


def test_without_any_head_a_trained_network_has_no_gap(run, make_condition):
    condition = make_condition(k=3, n_b=5, batch_size=15, max_steps=150)
    _, state = run(condition)
    data = sequences(draw_map(3, 5, condition.fibre, 0), "backward")
    found = ablate_heads(condition, state.network.weights, draw_sample(data, 15, 0, CPU))
    assert found.intact.z_gap > 0.1
    for ablated in (found.zero, found.mean):
        assert ablated.no_heads.z_gap == 0
        assert ablated.no_heads.candidate_loss > found.intact.candidate_loss


def test_effects_are_differences_between_evaluations(condition, random_weights, sample):
    found = ablate_heads(condition, random_weights, sample)
    intact = evaluate(network_of(condition, random_weights), sample)
    assert found.intact == intact
    assert found.examples == 24
    edit = ablation([(1, 3)])
    ablated = evaluate(network_of(condition, random_weights, edit), sample)
    effect = found.zero.without[7]
    assert (effect.layer, effect.head) == (1, 3)
    assert effect.candidate_loss_rise == ablated.candidate_loss - intact.candidate_loss != 0
    assert effect.joint_loss_rise == ablated.joint_loss - intact.joint_loss != 0
    assert effect.z_gap_fall == intact.z_gap - ablated.z_gap != 0
    rises = [effect.candidate_loss_rise for effect in found.zero.without]
    assert found.zero.leading.rise == pytest.approx(max(rises))
    # the error is one of differences: at least that of either loss less the other
    errors = intact.candidate_loss_error, ablated.candidate_loss_error
    assert abs(errors[0] - errors[1]) <= effect.candidate_loss_rise_error <= sum(errors)


def test_means_are_those_of_transformerlens(condition, random_weights, data):
    tokens = torch.from_numpy(data.tokens[:, :-1])
    tree = [Segment(tokens[:, None], asked=tokens.shape[1])]
    means = head_means(condition, random_weights, tree)
    _, cache = bridge_with(condition, random_weights).run_with_cache(tokens)
    for layer in range(2):
        expected = cache[f"blocks.{layer}.attn.hook_z"].mean(0)
        assert torch.allclose(means[layer], expected, atol=2e-6)


def test_each_token_of_a_tree_counts_once(condition, random_weights, data):
    tokens = torch.from_numpy(data.tokens[:3, :-1])  # one B, three z
    shared = [
        Segment(tokens[:1, None, :8]),
        Segment(tokens[None, :, 8:], 0, torch.zeros(1, dtype=torch.long), asked=5),
    ]
    plain = [Segment(tokens[:, None], asked=tokens.shape[1])]
    of_shared, of_plain = (head_means(condition, random_weights, t) for t in (shared, plain))
    assert torch.allclose(of_shared[0], of_plain[0], atol=1e-6)
    assert not of_shared[1, :10].any()  # the last layer sees asked positions only
    assert torch.allclose(of_shared[1, 10:], of_plain[1, 10:], atol=1e-6)
    uneven = [*plain, Segment(tokens[:1, None], asked=tokens.shape[1])]
    weighted = head_means(condition, random_weights, uneven)
    one = head_means(condition, random_weights, uneven[1:])
    assert torch.allclose(weighted, (3 * of_plain + one) / 4, atol=1e-6)


def test_a_head_with_constant_output_is_its_mean(condition, random_weights, sample):
    """Values without weights are their biases, whatever a head attends to."""
    weights = dict(random_weights)
    d_head = condition.d_model // condition.n_heads
    value = weights["layers.0.attn.v.weight"].clone()
    value[d_head : 2 * d_head] = 0
    weights["layers.0.attn.v.weight"] = value
    found = ablate_heads(condition, weights, sample)
    assert found.mean.without[1].candidate_loss_rise == pytest.approx(0, abs=1e-5)
    assert found.mean.without[1].joint_loss_rise == pytest.approx(0, abs=1e-5)
    assert abs(found.zero.without[1].joint_loss_rise) > 1e-3
    assert abs(found.mean.without[0].joint_loss_rise) > 1e-3


@pytest.mark.parametrize("head", [(0, 1), (1, 3)])
def test_ablation_equals_transformerlens_hooks(condition, random_weights, data, head):
    tokens = torch.from_numpy(data.tokens[:, :-1])
    tree = [Segment(tokens[:, None], asked=tokens.shape[1])]
    means = head_means(condition, random_weights, tree)
    bridge = bridge_with(condition, random_weights)
    layer, number = head
    intact = network_of(condition, random_weights).logits(tree)[0][:, 0]
    assert torch.allclose(intact, bridge(tokens), atol=5e-5)
    for given, value in ((None, 0.0), (means, means[layer, :, number])):

        def hook(z, hook, value=value):
            z = z.clone()
            z[:, :, number] = value
            return z

        name = f"blocks.{layer}.attn.hook_z"
        expected = bridge.run_with_hooks(tokens, fwd_hooks=[(name, hook)])
        edited = network_of(condition, random_weights, ablation([head], given))
        logits = edited.logits(tree)[0][:, 0]
        assert torch.allclose(logits, expected, atol=5e-5)
        assert not torch.allclose(logits, intact, atol=1e-2)


def test_only_spares_one_head_among_those_named(condition):
    outputs = torch.ones(5, 4, 8)
    positions = torch.arange(5)
    edit = only((0, 2), [head for head in all_heads(condition) if head[0] == 0])
    assert edit(0, outputs, positions)[:, :, 0].sum(0).tolist() == [0, 0, 5, 0]
    assert edit(1, outputs, positions) is outputs
    everywhere = only((0, 2), all_heads(condition))
    assert not everywhere(1, outputs, positions).any()
    assert outputs.all()


HEADS = [(0, 0), (0, 1), (1, 0), (1, 1)]


def rises(*means, spread=0.1, examples=100):
    noise = torch.randn(4, examples, generator=torch.Generator().manual_seed(0)).double()
    noise -= noise.mean(1, keepdim=True)
    return torch.tensor(means)[:, None] + spread * noise / noise.std(1, correction=0)[:, None]


def test_a_leader_has_a_layer_a_margin_and_a_share():
    leading = leading_head(HEADS, rises(0.5, -0.2, 1.5, 1.0))
    assert (leading.verdict, leading.layer, leading.head) == ("leader", 1, 0)
    assert leading.in_first_layer is False
    assert leading.rise == pytest.approx(1.5)
    assert leading.rise_error == pytest.approx(0.01)
    assert leading.second_rise == pytest.approx(1.0)
    assert leading.difference == pytest.approx(0.5)
    assert leading.difference_error == pytest.approx(0.014, abs=0.002)
    assert leading.ratio == pytest.approx(1.5)
    assert leading.share == pytest.approx(0.5)


def test_heads_that_cannot_be_told_apart_tie():
    leading = leading_head(HEADS, rises(0.2, 1.49, 0.1, 1.5))
    assert leading.verdict == "tie"
    assert leading.tied == ((1, 1), (0, 1))
    assert leading.layer is leading.head is leading.in_first_layer is None
    assert leading.difference == pytest.approx(0.01)


def test_the_same_examples_tell_apart_what_their_spread_hides():
    difficulty = torch.linspace(0, 4, 100).double()
    leading = leading_head(HEADS[:2], torch.stack([difficulty + 0.1, difficulty]))
    assert leading.rise_error > 0.1
    assert leading.difference_error == pytest.approx(0, abs=1e-9)
    assert leading.verdict == "leader"


@pytest.mark.parametrize(
    "values",
    [
        rises(0.02, 0.015, 0.01, 0.0),  # within 3 standard errors of 0
        rises(0.009, 0.0, 0.0, 0.0, spread=1e-4),  # certain, but nothing
        rises(-0.5, -0.3, -0.2, -0.1),
        torch.zeros(4, 10),
    ],
)
def test_nothing_leads_where_no_rise_stands_out(values):
    leading = leading_head(HEADS, values)
    assert leading.verdict == "none"
    assert leading.layer is leading.head is leading.in_first_layer is None
    assert leading.tied == ()
    json.dumps(asdict(leading), allow_nan=False)


def test_nothing_leads_in_a_network_that_knows_nothing(condition, sample):
    weights = initial(condition)
    weights["head.weight"] = torch.zeros_like(weights["head.weight"])
    found = ablate_heads(condition, weights, sample)
    assert found.intact.candidate_loss == pytest.approx(math.log(3))
    for ablated in (found.zero, found.mean):
        assert ablated.leading.verdict == "none"
        assert (ablated.leading.rise, ablated.leading.share) == (0, None)


def test_a_single_head_has_no_second():
    leading = leading_head([(0, 0)], rises(1.0, 0.0, 0.0, 0.0)[:1])
    assert leading.verdict == "leader"
    assert leading.second_rise is leading.difference is leading.ratio is None
    assert leading.share == 1


def test_attention_is_the_pattern_of_plain_queries_and_keys(condition, random_weights, data):
    tokens = draw_sequences(data, 10, seed=0)
    found = attention_to_z(condition, random_weights, tokens)
    assert found.examples == 10
    assert [(h.layer, h.head) for h in found.heads] == all_heads(condition)
    w = random_weights
    hidden = w["tok_embed.weight"][tokens] + w["pos.weight"]
    mean = hidden.mean(-1, keepdim=True)
    hidden = (hidden - mean) / (hidden.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    hidden = hidden * w["layers.0.ln1.weight"] + w["layers.0.ln1.bias"]
    q, k = (
        (hidden @ w[f"layers.0.attn.{x}.weight"].T + w[f"layers.0.attn.{x}.bias"])[..., 8:16]
        for x in "qk"
    )
    scores = q @ k.transpose(1, 2) / math.sqrt(8)
    scores = scores.masked_fill(torch.ones(15, 15).triu(1).bool(), -math.inf)
    expected = scores.softmax(-1)[:, 10:, 8:10].sum(-1).mean(0)
    head = found.heads[1]
    assert head.by_position == pytest.approx(expected.tolist(), abs=1e-5)
    assert head.first == head.by_position[0]
    assert head.mean == pytest.approx(sum(head.by_position) / 5)
    assert all(0 <= share <= 1 for h in found.heads for share in h.by_position)


def test_heads_without_queries_look_at_everything_alike(condition, random_weights, data):
    weights = {
        name: torch.zeros_like(weight) if "attn.q" in name else weight
        for name, weight in random_weights.items()
    }
    found = attention_to_z(condition, weights, draw_sequences(data, 5, seed=0))
    for head in found.heads:
        assert head.by_position == pytest.approx([2 / 11, 2 / 12, 2 / 13, 2 / 14, 2 / 15])
        assert head.first == pytest.approx(found.uniform_first)
        assert head.mean == pytest.approx(found.uniform_mean)


def test_the_sequences_are_different_examples_without_eos(data):
    tokens = draw_sequences(data, 1000, seed=3)
    assert tokens.shape == (24, 15)
    assert len(torch.unique(tokens, dim=0)) == 24
    assert torch.equal(draw_sequences(data, 5, 3), draw_sequences(data, 5, 3))


def test_other_networks_are_refused(condition, make_condition, random_weights, sample):
    linear = make_condition(network="linear")
    with pytest.raises(ValueError, match="linear"):
        ablate_heads(linear, random_weights, sample)
    with pytest.raises(ValueError, match="linear"):
        bridge_with(linear, random_weights)
    with pytest.raises(ValueError, match="differs"):
        bridge_with(condition.model_copy(update={"d_mlp": 32}), random_weights)
    with pytest.raises(ValueError, match=r"layers\.1"):
        bridge_with(condition.model_copy(update={"n_layers": 1}), random_weights)


def test_samples_are_as_large_as_their_tokens_allow():
    data = sequences(draw_map(20, 20, "distinct", 0), "backward")
    sample = ablation_sample(data, 512, 0, CPU)
    assert 0.8 * SAMPLE_TOKENS < sample.n_tokens < 1.1 * SAMPLE_TOKENS
    assert len(ablation_sample(data, 10, 0, CPU).answers) == 10
    small = sequences(draw_map(2, 3, "distinct", 0), "backward")
    assert len(ablation_sample(small, 512, 0, CPU).answers) == 6


def test_the_stage_writes_phases_and_attention(tmp_path, condition, planted, params):
    ambiguous_map = draw_map(condition.k, condition.n_b, condition.fibre, 0)
    table = pd.DataFrame(to_strings(ambiguous_map), columns=["b", "z", "a"])
    table.to_csv(tmp_path / "dataset.csv", index=False)
    history = {"step": [0, 10, 20], "examples": [0, 240, 480], "candidate_loss": [1.1, 0.3, 0.1]}
    pd.DataFrame(history).to_csv(tmp_path / "history.csv", index=False)
    write_yaml(tmp_path / "params.yaml", params)
    write_yaml(tmp_path / "train.yaml", condition.model_dump())
    write_json(tmp_path / "outcome.json", {"status": "transition_passed"})
    (tmp_path / "weights").mkdir()
    for step in (0, 5, 10, 15, 20):
        weights = initial(condition) if step < 10 else planted
        save_file(weights, tmp_path / "weights" / checkpoint_name(step))
    names = ("params.yaml", "train.yaml", "dataset.csv", "history.csv", "weights")
    files = [*(str(tmp_path / name) for name in names), "0", str(tmp_path / "heads.json")]
    write_analysis(heads.analyse, *files)
    written = read_json(tmp_path / "heads.json")
    assert (written["k"], written["tau"]["step"]) == (condition.k, 10)
    steps = {phase: found["step"] for phase, found in written["phases"].items()}
    assert steps == {"plateau": 5, "transition": 10, "end": 20}
    plateau, transition = (written["phases"][phase] for phase in ("plateau", "transition"))
    assert plateau["zero"]["leading"]["verdict"] != "leader"
    assert transition["zero"]["leading"]["head"] == SELECTING[1]
    assert transition["examples"] == 24
    phases = {row["step"]: row["phase"] for row in written["attention"]}
    assert phases == {0: "plateau", 5: "plateau", 10: "transition", 15: "end", 20: "end"}
    assert len(written["attention"][0]["heads"]) == len(transition["mean"]["without"]) == 8
