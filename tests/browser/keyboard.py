"""A page worked by its keyboard alone: each stop of Tab must be in sight and look like one."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

# Streamlit hides the input of a tick box, a choice and a slider behind its label or thumb, so what
# is drawn is asked; a grid draws its own ring on its canvas, around the cell.
STOP = """() => {
  const focused = document.activeElement;
  if (focused === document.body) return ["(end of the page)", ""];
  const grid = focused.closest("canvas")?.closest("[data-testid=stDataFrameResizable]");
  const drawn = grid
    ?? (focused.matches("[type=radio], [type=checkbox]") ? focused.closest("label") : null)
    ?? (focused.type === "range" ? focused.parentElement.parentElement : focused);
  const name = (focused.ariaLabel || drawn.innerText || focused.labels?.[0]?.innerText
    || focused.tagName).trim().slice(0, 60);
  const box = drawn.getBoundingClientRect();
  const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  const within = box.width > 0 && box.top >= 0 && box.left >= 0
    && box.bottom <= innerHeight && box.right <= innerWidth;
  if (!within) return [name, "is outside the window"];
  if (!hit || !drawn.contains(hit)) return [name, "lies under " + (hit?.outerHTML ?? "no column")];
  const look = getComputedStyle(drawn);
  const ring = look.outlineStyle !== "none" && parseFloat(look.outlineWidth) >= 2;
  return [name, grid || ring || look.boxShadow !== "none" ? "" : "has no ring"];
}"""
FADES = 80  # looks, four a second, at what may still be fading in


def tab_to(target: Locator, *, key: str = "Tab", most: int = 80) -> None:
    """Press Tab until an element has the focus, and look at each stop on the way.

    Args:
      target: by role and accessible name, as a screen reader says them.
      key: `Shift+Tab` goes back.
      most: presses before the element counts as out of reach.
    """
    page = target.page
    names: list[str] = []
    for _ in range(most):
        page.keyboard.press(key)
        name, fault = page.evaluate(STOP)
        for _ in range(FADES):
            if not fault:
                break
            page.wait_for_timeout(250)  # a grid's tools fade in once they have the focus
            name, fault = page.evaluate(STOP)
        names.append(name)
        assert not fault, f"{name!r} {fault}, after {names[:-1]}"
        if target.and_(page.locator(":focus")).count():
            return
    pytest.fail(f"{key} does not reach {target}. It stops at {names}")


def press(target: Locator, key: str = "Enter", *, most: int = 80) -> None:
    """Tab to an element and press a key there."""
    tab_to(target, most=most)
    target.page.keyboard.press(key)


def pick(option: Locator, group: Locator, key: str = "Space", *, most: int = 20) -> None:
    """Tab into a group of choices, which is one stop, and pick one by arrows and a key.

    Args:
      option: of the group; one that is picked already is left so.
      group: its options, as a screen reader says them.
      key: that picks.
      most: presses of an arrow before the option counts as out of reach.
    """
    page = option.page
    focused = page.locator(":focus")
    tab_to(group.locator("[role=radio]").first)
    for _ in range(most):
        if option.and_(focused).count():
            break
        page.keyboard.press("ArrowRight")
        name, fault = page.evaluate(STOP)
        assert not fault, f"{name!r} {fault}"
    else:
        pytest.fail(f"ArrowRight does not reach {option}")
    if option.get_attribute("aria-checked") != "true":
        page.keyboard.press(key)
    expect(option).to_be_checked()
