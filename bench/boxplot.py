"""Draws box plots as SVG: two boxes a group, on a scale from 0 to 100 %.

A box goes from the first to the third quartile with a line at the median; its whiskers end at the 10th and
the 90th percentile; each dot is a value. The two boxes of a group differ in lightness and in texture.
"""

import html
import math
from typing import List, NamedTuple, Sequence, Tuple

WIDTH, TOP, BOTTOM, LEFT, RIGHT = 760, 84, 64, 64, 24
HEIGHT, BOX, GAP = 430, 34, 10
INK, FAINT, PALE, DEEP = "#1f2933", "#d5dbe1", "#f6d9b8", "#3b6ea5"


class Group(NamedTuple):
    """The values above one name, in per cent."""

    name: str
    below: str
    left: Sequence[float]
    right: Sequence[float]


def percentile(values: Sequence[float], share: float) -> float:
    """A quantile, by linear interpolation between the two nearest values."""
    ordered = sorted(values)
    at = (len(ordered) - 1) * share / 100
    low, high = math.floor(at), math.ceil(at)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def draw(title: str, axis: str, labels: Tuple[str, str], groups: Sequence[Group]) -> str:
    plot = HEIGHT - TOP - BOTTOM
    step = (WIDTH - LEFT - RIGHT) / len(groups)

    def height(value: float) -> float:
        return TOP + plot * (1 - value / 100)

    parts = [write_head(title)]
    for tick in range(0, 101, 20):
        y = height(tick)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="{FAINT}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick} %</text>')
    middle = TOP + plot / 2
    turn = f'transform="rotate(-90 16 {middle:.1f})"'
    parts.append(f'<text x="16" y="{middle:.1f}" text-anchor="middle" {turn}>{html.escape(axis)}</text>')
    parts += write_legend(labels)
    for number, group in enumerate(groups):
        centre = LEFT + step * (number + 0.5)
        for side, values in ((-1, group.left), (1, group.right)):
            fill = PALE if side < 0 else "url(#deep)"
            parts += draw_box(centre + side * (BOX + GAP) / 2, [height(one) for one in values], fill)
        y = HEIGHT - BOTTOM + 22
        parts.append(f'<text x="{centre:.1f}" y="{y}" text-anchor="middle">{html.escape(group.name)}</text>')
        below = f'x="{centre:.1f}" y="{y + 18}" text-anchor="middle" font-size="12" fill="#52606d"'
        parts.append(f"<text {below}>{html.escape(group.below)}</text>")
    return "\n".join([*parts, "</svg>", ""])


def write_head(title: str) -> str:
    lines = f'<path d="M-2 2L2 -2M0 8L8 0M6 10L10 6" stroke="{INK}" stroke-width="1"/>'
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" \
font-family="sans-serif" font-size="14" fill="{INK}" role="img">
<title>{html.escape(title)}</title>
<defs><pattern id="deep" width="8" height="8" patternUnits="userSpaceOnUse">\
<rect width="8" height="8" fill="{DEEP}"/>{lines}</pattern></defs>
<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>
<text x="{WIDTH / 2}" y="28" text-anchor="middle" font-size="17">{html.escape(title)}</text>"""


def write_legend(labels: Tuple[str, str]) -> List[str]:
    parts = []
    for at, (label, fill) in enumerate(zip(labels, (PALE, "url(#deep)"))):
        x = LEFT + 150 + at * 250
        parts.append(f'<rect x="{x}" y="46" width="18" height="18" fill="{fill}" stroke="{INK}"/>')
        parts.append(f'<text x="{x + 26}" y="60">{html.escape(label)}</text>')
    return parts


def draw_box(x: float, heights: List[float], fill: str) -> List[str]:
    """A box around `x`. Heights grow downwards, so the 90th percentile of them is the lower whisker."""
    top, upper, middle, lower, bottom = (percentile(heights, share) for share in (10, 25, 50, 75, 90))
    left, right, line = x - BOX / 2, x + BOX / 2, f'stroke="{INK}" stroke-width="1.5"'
    parts = [
        f'<path d="M{x:.1f} {top:.1f}V{upper:.1f}M{x:.1f} {lower:.1f}V{bottom:.1f}" {line}/>',
        f'<path d="M{x - 8:.1f} {top:.1f}h16M{x - 8:.1f} {bottom:.1f}h16" {line}/>',
        f'<rect x="{left:.1f}" y="{upper:.1f}" width="{BOX}" height="{max(lower - upper, 0.5):.1f}" '
        f'fill="{fill}" {line}/>',
    ]
    for number, height in enumerate(sorted(heights)):
        # Values that are alike would hide each other.
        aside = x + (number * 7 % 5 - 2) * 5
        parts.append(
            f'<circle cx="{aside:.1f}" cy="{height:.1f}" r="2.2" fill="#ffffff" stroke="{INK}" '
            'stroke-width="0.8" fill-opacity="0.75"/>'
        )
    median = f'<path d="M{left:.1f} {middle:.1f}H{right:.1f}"'
    parts.append(f'{median} stroke="#ffffff" stroke-width="6"/>')
    parts.append(f'{median} stroke="#b3122a" stroke-width="3"/>')
    return parts
