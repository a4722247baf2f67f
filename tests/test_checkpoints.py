from mbc.checkpoints import choose, choose_phases, phase_of
from mbc.transitions import Moment

TAU = Moment(step=1000, observed=True, after=950, examples=1)
STEPS = list(range(0, 2101, 100))


def test_the_nearest_checkpoints_are_chosen_once():
    chosen = choose(STEPS, TAU, [0.5, 0.52, 1.0, float("inf")])
    assert [c.step for c in chosen] == [500, 1000, 2100]
    assert [c.fraction for c in chosen] == [0.5, 1.0, 2.1]
    assert [c.phase for c in chosen] == ["plateau", "transition", "end"]


def test_of_two_equally_near_the_earlier_is_taken():
    assert choose([0, 100, 200], Moment(150, True, 140, 1), [1.0])[0].step == 100


def test_phases():
    assert [phase_of(f) for f in (0, 0.75, 0.76, 1.25, 1.26, 9)] == [
        *("plateau", "plateau", "transition", "transition", "end", "end")
    ]
    assert {p: c.step for p, c in choose_phases(STEPS, TAU).items()} == {
        **{"plateau": 500, "transition": 1000, "end": 2100}
    }


def test_a_run_without_an_end_has_fewer_phases():
    assert list(choose_phases(STEPS[:11], TAU)) == ["plateau", "transition"]
    assert list(choose_phases([0], TAU)) == ["plateau"]
