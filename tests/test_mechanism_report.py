import pandas as pd

from mbc.mechanism_report import mechanism_lines


def mechanism(verdict="leader", negative=True):
    """Tables of one followed run, with made-up numbers."""
    run = {"run": "base-42", "k": 20}
    curve = [(0.5, 0.0, 0.1), (1.0, 0.3, 0.55), (1.5, 0.98, 0.97)]
    transition = {
        **{"width": 100, "statement": "", "width_over_mean_time": 0.4, "independent_low": 1.1},
        **{"independent_high": None, "heterogeneity_halfway": 1.2},
        **{"heterogeneity_low": 0.8, "heterogeneity_high": 1.25},
    }
    head = {"phase": "transition", "ablation": "zero", "verdict": verdict, "layer": 0, "head": 3}
    eigenvalues = {
        **{"phase": "plateau", "largest": 2.8, "largest_residual": 0.01, "smallest": -0.5},
        **{"smallest_residual": 0.02, "smallest_converged": True, "negative": negative},
        **{"transferred": -0.1, "rounding": 1e-6},
    }
    share = {"batch_size": 512, "share_over_isotropic": 4000.0, "low": 3000.0, "high": 6000.0}
    return {
        "groups": pd.DataFrame(
            [
                {
                    **{**run, "fraction": fraction, "share_solved": share},
                    **{"mean_accuracy": accuracy, "independent_share_solved": share / 2},
                }
                for fraction, share, accuracy in curve
            ]
        ),
        "group_transitions": pd.DataFrame([{**run, **transition}]),
        "leading_heads": pd.DataFrame(
            [{**run, **head, "tied": "L0H3 L0H1", "rise": 1.72, "second_rise": 1.07}]
        ),
        "curvature": pd.DataFrame(
            [{**run, **eigenvalues, "largest_converged": i == 0} for i in range(2)]
        ),
        "displacement": pd.DataFrame(
            [{**run, "component": "whole", "phase": "plateau", "cosine": 0.35, "fresh": 0.31}]
        ),
        "noise_shares": pd.DataFrame([{**run, **share, "direction": "largest 1"}]),
    }


def texts(tables):
    lines = mechanism_lines(tables)
    return dict(zip(lines["measured"], lines["base-42"]))


def test_every_measurement_is_a_line_with_what_it_is_compared_with():
    found = texts(mechanism())
    assert found["groups solved at 1 τ"] == (
        "30% (mean accuracy 0.55; 15% if items were independent)"
    )
    width = found["width of the groups' transition / mean time until solved"]
    assert width == "0.40 (independent, memoryless: 1.10 to beyond)"
    assert found["leading head, zero ablation, transition"] == "L0H3: 1.72, next 1.07 nats"
    assert found["largest eigenvalue, plateau, two samples"] == (
        "2.8 ± 0.01, 2.8 ± 0.01 (not converged)"
    )
    assert found["cosine of displacements, plateau"] == "0.35 (random walk 0.31)"
    noise = found["noise along the direction of the largest eigenvalue / isotropic, batch 512"]
    assert noise == "4e+03 [3e+03, 6e+03]"


def test_what_cannot_be_told_is_said():
    found = texts(mechanism(verdict="tie", negative=False))
    tie = found["leading head, zero ablation, transition"]
    assert tie == "tie of L0H3 L0H1: 1.72, next 1.07 nats"
    smallest = found["smallest eigenvalue, plateau, two samples"]
    assert smallest.endswith("; along the first one's direction the second sample -0.1")
    never = mechanism()
    never["group_transitions"] = never["group_transitions"].assign(width=None, statement="Never.")
    assert texts(never)["width of the groups' transition / mean time until solved"] == "Never."
