import pandas as pd

from mbc.mechanism_report import mechanism_lines, noise_lines


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
    noise = [("smallest", -0.5, 0.001, 500.0), ("largest 2", 2.0, 0.008, 3500.0)]
    noise.append(("largest 1", 2.8, 0.01, 4000.0))
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
        "noise_shares": pd.DataFrame(
            [
                {
                    **{**run, "batch_size": size, "direction": direction, "eigenvalue": curvature},
                    **{"share": share, "share_over_isotropic": ratio},
                    **{"low": 0.75 * ratio, "high": 1.5 * ratio},
                }
                for direction, curvature, share, ratio in noise
                for size in (128, 512)
            ]
        ),
        "noise_sizes": pd.DataFrame(
            [
                {**run, "lr": 1e-3, "batch_size": size, "trace": trace}
                for size, trace in ((128, 0.3), (512, 0.07))
            ]
        ),
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


def test_what_cannot_be_told_is_said():
    found = texts(mechanism(verdict="tie", negative=False))
    tie = found["leading head, zero ablation, transition"]
    assert tie == "tie of L0H3 L0H1: 1.72, next 1.07 nats"
    smallest = found["smallest eigenvalue, plateau, two samples"]
    assert smallest.endswith("; along the first one's direction the second sample -0.1")
    never = mechanism()
    never["group_transitions"] = never["group_transitions"].assign(width=None, statement="Never.")
    assert texts(never)["width of the groups' transition / mean time until solved"] == "Never."


def test_noise_is_a_row_a_run_with_its_size_and_its_shares():
    (row,) = noise_lines(mechanism()).to_dict("records")
    assert row == {
        "run": "base-42",
        "lr": "0.001",
        "trace of the noise, batch 512": "0.07",
        "largest eigenvalue": "2.8",
        "smallest": "-0.5",
        "noise along the largest / isotropic": "4e+03 [3e+03, 6e+03]",
        "along the smallest / isotropic": "500 [375, 750]",
        "along the 2 largest, of all": "1.8%",
    }
    larger = mechanism()
    only_128 = larger["noise_shares"].query("batch_size == 128").assign(run="k10-42")
    larger["noise_shares"] = pd.concat([larger["noise_shares"], only_128])
    sizes = larger["noise_sizes"]
    larger["noise_sizes"] = pd.concat([sizes, sizes.assign(run="k10-42")])
    assert "trace of the noise, batch 128" in noise_lines(larger)  # the largest that both have
