import math

import pytest

from mbc.diagnostics import Diagnostics, diagnose
from mbc.settings import TransitionSettings
from mbc.transitions import measure
from tests.test_transitions import LOG_K, K, history, moment


@pytest.fixture
def settings(params):
    return TransitionSettings(**params["transition"])


def test_the_first_characters_loss_has_an_onset_of_its_own(settings):
    table = history([1.0, 1.0, 0.8, 0.4, 0.2, 0.1])
    table["loss_character_1"] = [3.6, 3.6, 3.5, 3.1, 0.95 * LOG_K, 0.85 * LOG_K]
    table["joint_loss"] = [14.0, 14.0, 9.0, 6.0, 4.0, 3.0]
    tau = measure(table, K, settings).tau
    found = diagnose(table, K, tau, settings)
    assert found.loss_onset_character == moment(500, True, 400)
    assert tau.step == 300
    assert (found.tau_loss_character_1, found.tau_joint_loss) == (3.1, 6.0)
    table["loss_character_1"] = math.log(36)
    assert diagnose(table, K, tau, settings).loss_onset_character == moment(500, False, 500)


def test_b_matters_from_the_first_of_several_evaluations_in_a_row(settings):
    table = history([1.0] * 6).assign(b_gap_string=[0.0, 0.5, 0.0, 0.2, 0.3, 0.4])
    found = diagnose(table, K, measure(table, K, settings).tau, settings)
    assert found.onset_b_string == moment(300, True, 200)
    assert (found.tau_loss_character_1, found.tau_joint_loss) == (None, None)  # no tau


def test_without_ambiguity_there_is_nothing_to_diagnose(settings):
    assert diagnose(history([1.0] * 4), 1, None, settings) == Diagnostics()
