"""The picture of attacks: points below the curve, grey unless an alarm stands."""

from core.figures.attack_bound import attack_figure
from core.figures.elements import LINE, VERMILION
from core.privacy.accounting.attacker import best_attack


def test_attacks_are_points_and_grey_where_chance_explains_them():
    bound = best_attack(None, 1.0, 1e-6)
    tried = [
        {"title": "a", "accused": 0.1, "found": 0.12, "exposed": False},
        {"title": "b", "accused": 0.1, "found": 0.5, "exposed": True},
        {"title": "not placed", "exposed": True},
    ]
    guessing, curve, points = attack_figure(bound, tried)["data"]
    assert points["x"] == [0.1, 0.1] and points["marker"]["color"] == [LINE, VERMILION]
    assert guessing["x"] == guessing["y"] and curve["y"][-1] == 1.0
    assert all(y >= x for x, y in zip(curve["x"], curve["y"], strict=True))
    assert curve["y"] == sorted(curve["y"])
    assert len(attack_figure(bound, [])["data"]) == 2
