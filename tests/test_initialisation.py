import torch

from mbc.conditions import NETWORK_KEYS
from mbc.initialisation import initial_weights
from mbc.network import network_of
from mbc.task import draw_map, layout, sequences
from mbc.training import batch_loss, training_tree
from tests.conftest import CPU, initial


def test_initial_weights_fit_every_task(make_condition):
    for changes in ({}, {"direction": "forward"}, {"fibre": "structured"}, {"network": "linear"}):
        condition = make_condition(**changes)
        data = sequences(draw_map(4, 20, condition.fibre, 0), condition.direction)
        batch = torch.arange(8).numpy()
        tree, answers = training_tree(data, batch, batch, CPU)
        assert batch_loss(network_of(condition, initial(condition)), tree, answers) > 1


def test_the_layout_is_that_of_the_sequences():
    for direction in ("backward", "forward"):
        for fibre in ("distinct", "free", "structured"):
            data, places = sequences(draw_map(4, 20, fibre, 0), direction), layout(direction, fibre)
            assert places.answer_start == data.answer_start
            assert places.n_target == data.n_target
            assert places.n_positions == data.tokens.shape[1] - 1


def test_other_keys_than_those_of_the_network_make_no_difference(make_condition):
    one, same, other = (make_condition(**c) for c in ({}, {"k": 6, "lr": 0.1}, {"d_mlp": 32}))
    weights = [initial(condition) for condition in (one, same, other)]
    assert all(torch.equal(weights[0][name], w) for name, w in weights[1].items())
    assert weights[2]["layers.0.mlp.fc_in.weight"].shape == (32, 32)
    assert set(NETWORK_KEYS) == set(initial_weights.__annotations__) - {"seed", "return"}
