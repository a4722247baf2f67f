import math

import pytest
import torch

from mbc.bridge import build_model, named_weights
from mbc.model import Segment, tree_logits
from mbc.network import Network
from mbc.task import draw_map, sequences
from mbc.training import batch_loss, training_tree

CPU = torch.device("cpu")
SHAPE = {"n_layers": 2, "d_model": 32, "n_heads": 4, "d_mlp": 64, "n_positions": 15}


def model(seed=0, initialisation="paper"):
    return build_model(**SHAPE, initialisation=initialisation, seed=seed, device=CPU)


@pytest.fixture(scope="module")
def bridge():
    return model()


@pytest.fixture(scope="module")
def data():
    return sequences(draw_map(6, 10, "distinct", seed=0), "backward")


def test_weights_are_the_models_own(bridge):
    weights = named_weights(bridge)
    own = {id(p) for p in bridge.original_model.parameters()}
    assert {id(w) for w in weights.values()} == own
    assert "layers.0.attn.q.weight" in weights


def test_paper_initialisation_has_one_standard_deviation():
    big = build_model(
        **{**SHAPE, "d_model": 128, "d_mlp": 512}, initialisation="paper", seed=0, device=CPU
    )
    for name, weight in named_weights(big).items():
        if weight.dim() == 2 and "ln" not in name:
            assert weight.std().item() == pytest.approx(0.8 / math.sqrt(128), rel=0.05), name
        elif name.endswith("bias"):
            assert not weight.any()


def test_scaled_initialisation_differs_in_output_projections_alone():
    paper, scaled = (named_weights(model(initialisation=i)) for i in ("paper", "scaled"))
    changed = {name for name in paper if not torch.equal(paper[name], scaled[name])}
    assert changed == {f"layers.{i}.{p}.weight" for i in (0, 1) for p in ("attn.o", "mlp.fc_out")}
    ratio = paper["layers.0.attn.o.weight"] / scaled["layers.0.attn.o.weight"]
    assert torch.allclose(ratio, torch.tensor(2.0))


def test_the_seed_decides_the_weights_and_the_global_generator_is_untouched():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, same, other = (named_weights(model(seed)) for seed in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["head.weight"], other["head.weight"])


def test_a_tree_of_shared_prefixes_gives_the_whole_models_logits(bridge, data):
    tokens = torch.from_numpy(data.tokens)
    expected = bridge(tokens[:, :-1], return_type="logits")[:, -5:]
    plain = [Segment(tokens[:, None, :-1], asked=5)]
    rows = torch.arange(60)
    b_rows = rows // 6
    split = [
        Segment(tokens[:1, None, :1]),
        Segment(tokens[::6, None, 1:8], 0, torch.zeros(10, dtype=torch.long)),
        Segment(tokens[:, None, 8:15], 1, b_rows, asked=5),
    ]
    siblings = [
        Segment(tokens[::6, None, :8]),
        Segment(tokens[:, 8:15].reshape(10, 6, 7), 0, torch.arange(10), asked=5),
    ]
    for tree in (plain, split, siblings):
        logits = tree_logits(named_weights(bridge), tree, n_heads=4)[-1].reshape(60, 5, -1)
        assert torch.allclose(logits, expected, atol=2e-5)


def test_siblings_and_grandchildren_see_their_own_past(bridge, data):
    tokens = torch.from_numpy(data.tokens)
    expected = bridge(tokens[:, :-1], return_type="logits")
    tree = [
        Segment(tokens[::6, None, :8]),
        Segment(tokens[:, 8:11].reshape(10, 6, 3), 0, torch.arange(10), asked=1),
        Segment(tokens[:, None, 11:15].flip(0), 1, torch.arange(60).flip(0), asked=2),
    ]
    _, middle, last = tree_logits(named_weights(bridge), tree, n_heads=4)
    assert torch.allclose(middle.reshape(60, -1), expected[:, 10], atol=2e-5)
    assert torch.allclose(last[:, 0].flip(0), expected[:, 13:], atol=2e-5)


def test_loss_and_gradient_are_those_of_the_plain_model(bridge, data):
    batch = torch.arange(0, 60, 3).numpy()
    weights = named_weights(bridge)
    network = Network(weights, lambda tree: tree_logits(weights, tree, n_heads=4))
    tree, answers = training_tree(data, batch, batch, CPU)
    names = list(weights)
    loss = batch_loss(network, tree, answers)
    gradients = torch.autograd.grad(loss, [weights[n] for n in names])
    tokens = torch.from_numpy(data.tokens[batch])
    logits = bridge(tokens[:, :-1], return_type="logits")[:, -5:]
    plain = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, -5:].flatten())
    expected = torch.autograd.grad(plain, [weights[n] for n in names])
    assert loss.item() == pytest.approx(plain.item(), rel=1e-6)
    for name, gradient, right in zip(names, gradients, expected, strict=True):
        assert torch.allclose(gradient, right, atol=1e-6), name


@pytest.mark.parametrize("layer", [0, 1])
def test_edited_heads_give_the_logits_of_transformerlens_hooks(bridge, data, layer):
    tokens = torch.from_numpy(data.tokens)
    rows = torch.arange(60)
    tree = [
        Segment(tokens[::6, None, :8]),
        Segment(tokens[:, None, 8:15], 0, rows // 6, asked=5),
    ]

    def edit(at, heads, positions):
        assert heads.shape == (len(positions), 4, 8)
        assert positions.max() == 14
        if at != layer:
            return heads
        changed = heads.clone()
        changed[:, 2] = positions[:, None].to(heads) / 10
        return changed

    def hook(z, hook):
        z = z.clone()
        z[:, :, 2] = torch.arange(z.shape[1])[:, None].to(z) / 10
        return z

    name = f"blocks.{layer}.attn.hook_z"
    expected = bridge.run_with_hooks(tokens[:, :-1], fwd_hooks=[(name, hook)])[:, -5:]
    logits = tree_logits(named_weights(bridge), tree, 4, edit)[-1][:, 0]
    assert torch.allclose(logits, expected, atol=2e-5)
    assert not torch.allclose(logits, bridge(tokens[:, :-1])[:, -5:], atol=1e-2)
