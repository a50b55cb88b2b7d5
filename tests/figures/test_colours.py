"""Colours of figures: told apart with every common kind of colour-blindness, in both themes."""

from itertools import combinations

import numpy as np
import pytest

from core.figures.elements import BLUE, PHASES, VERMILION

PAGES = {"light": "#FFFFFF", "dark": "#10181D"}
# Linear RGB seen with one kind of cone missing: Machado, Oliveira and Fernandes, "A
# physiologically-based model for simulation of color vision deficiency", 2009, severity 1.
SEEN = {
    "full": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.01182, 0.04294, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.3039],
        ]
    ),
}
JUST_SEEN = 2.3  # ΔE of CIE 1976 that an eye just notices
SURE = 10 * JUST_SEEN


def linear(colour: str) -> np.ndarray:
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear sRGB under D65."""
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    x = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(x > 216 / 24389, np.cbrt(x), (24389 / 27 * x + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(a: str, b: str) -> float:
    """Of two colours' luminances, as WCAG 2.2 defines it."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    bright = sorted((weights @ linear(a), weights @ linear(b)))
    return float((bright[1] + 0.05) / (bright[0] + 0.05))


def test_the_measure_knows_black_from_white_and_red_from_green():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert np.allclose(lab(linear("#FFFFFF")), [100, 0, 0], atol=0.5)
    red, green = (SEEN["deuteranopia"] @ linear(c) for c in ("#A05A00", "#5A7A00"))
    full = np.linalg.norm(lab(linear("#A05A00")) - lab(linear("#5A7A00")))
    assert np.linalg.norm(lab(red) - lab(green)) < full / 2


@pytest.mark.parametrize("eyes", SEEN)
def test_real_and_synthetic_differ_for_everyone(eyes):
    a, b = (lab(SEEN[eyes] @ linear(colour)) for colour in (BLUE, VERMILION))
    assert np.linalg.norm(a - b) > SURE


@pytest.mark.parametrize("theme", PAGES)
def test_marks_stand_out_from_the_page(theme):
    for colour in (BLUE, VERMILION):
        assert contrast(colour, PAGES[theme]) >= 3  # WCAG 2.2, 1.4.11: graphical objects


@pytest.mark.parametrize("eyes", SEEN)
def test_phases_that_stand_side_by_side_can_be_told_apart(eyes):
    found = [lab(SEEN[eyes] @ linear(colour)) for colour in PHASES]
    assert min(np.linalg.norm(a - b) for a, b in combinations(found, 2)) > JUST_SEEN
