"""Pictures for the page: matplotlib's SVG with the page's own colours, in light, dark and print.

matplotlib knows no CSS. So pictures are drawn with colours that stand for names, and these become
CSS variables; what the page does not need (metadata, fonts, most ids) is left out.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from io import StringIO
from typing import Any
from xml.etree import ElementTree

from unbag.plots import draw_legend, new_figure
from unbag.report._page import Picture

WIDTH = 6.4  # inches of 72 units: wide enough for a page, narrow enough for a phone
CURVES = tuple(f"c{i}" for i in range(6))
STAND_INS = {f"#fe00{i:02x}": name for i, name in enumerate(("ink", "soft", "rule", *CURVES))}
COLOUR = {name: stand_in for stand_in, name in STAND_INS.items()}
STYLE: Any = {
    "font.size": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "text.color": COLOUR["ink"],
    "axes.labelcolor": COLOUR["ink"],
    "axes.edgecolor": COLOUR["soft"],
    "axes.formatter.useoffset": False,
    "xtick.color": COLOUR["soft"],
    "ytick.color": COLOUR["soft"],
    "grid.color": COLOUR["rule"],
    "lines.linewidth": 2,
    "legend.fontsize": 12,
    "text.parse_math": False,  # a dollar in a user's name is a dollar
    "svg.fonttype": "none",
    "svg.hashsalt": "unbag",
}
FONT = re.compile(r"font(-family)?: [^;]*'[^;]*;? ?")
REFERENCE = re.compile(r"((?:^|url\()#)(\w+)")  # to an id; a colour has no such place
FINE = re.compile(r"(?<=\.\d\d)\d+")  # digits below a hundredth of a point


def picture_of(
    draw: Callable[[Any], None], words: str, caption: str = "", *, name: str, height: float = 3.8
) -> Picture:
    """A picture for a page, with its caption.

    Parameters
    ----------
    draw : function from Axes to None
        Draws it.
    words : str
        What is to be seen, for those who cannot see it.
    caption : str
        What stands below it; by default the same words.
    name : str
        Begins the ids of this picture, so that no two on a page have the same.
    height : float
        In inches; a page is 6.4 wide.
    """
    from cycler import cycler
    from matplotlib import rc_context

    cycle = {"axes.prop_cycle": cycler(color=[COLOUR[curve] for curve in CURVES])}
    text = StringIO()
    with rc_context(STYLE | cycle), warnings.catch_warnings():
        # the browser has its own fonts: it does not matter which letters matplotlib's lack
        warnings.filterwarnings("ignore", message="Glyph")
        figure = new_figure(WIDTH, height)
        axes = figure.subplots()
        draw(axes)
        draw_legend(axes)
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    return Picture(_for_page(text.getvalue(), words, name), caption or words)


def lean(svg: str) -> ElementTree.Element:
    """matplotlib's file without what no reader needs: metadata, ids that nothing refers to, groups
    around one thing, fonts by name, and digits below a hundredth of a point.

    Parameters
    ----------
    svg : str
        What matplotlib wrote.
    """
    root = ElementTree.fromstring(svg)
    values = [value for part in root.iter() for value in part.attrib.values()]
    used = dict.fromkeys(i for value in values for _, i in REFERENCE.findall(value))
    ids = {old: f"p{number}" for number, old in enumerate(used)}
    for part in root.iter():
        part.tag = _local(part.tag)
        short = {_local(k): _short(v, ids) for k, v in part.attrib.items()}
        short["id"] = ids.get(short.get("id", ""), "")
        if short.get("transform", "").startswith("rotate(-0 "):
            short["transform"] = ""
        part.attrib = {k: v for k, v in short.items() if v}
        part.text, part.tail = (part.text or "").strip(), ""
    for part in list(root.iter()):
        part[:] = _unwrapped(part)
    for part in root.iter():  # without the groups that were taken out
        styles = {child.get("style") for child in part}
        if part.tag == "g" and len(part) > 1 and len(styles) == 1 and None not in styles:
            # the markers of a curve look alike: said once, by their group
            part.set("style", part[0].attrib["style"])
            for child in part:
                del child.attrib["style"]
    return root


def _unwrapped(part: ElementTree.Element) -> Iterator[ElementTree.Element]:
    """The children of a part; in place of a group that says nothing, its children."""
    for child in part:
        if child.tag == "g" and not child.attrib:
            yield from _unwrapped(child)
        elif child.tag not in ("metadata", "style"):
            yield child


def _for_page(svg: str, words: str, name: str) -> str:
    """matplotlib's file as a part of the page: named ids, CSS variables, words."""
    root = lean(svg)
    for part in root.iter():
        part.attrib = {k: _value(v, name) for k, v in part.attrib.items()}
        if "id" in part.attrib:
            part.set("id", f"{name}-{part.attrib['id']}")
    head = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": root.attrib["viewBox"]}
    root.attrib = {**head, "role": "img", "aria-label": words}
    title = ElementTree.Element("title")
    title.text = words
    root.insert(0, title)
    return ElementTree.tostring(root, encoding="unicode")


def _local(name: str) -> str:
    """A name without its namespace."""
    return name.rpartition("}")[2]


def _short(value: str, ids: dict[str, str]) -> str:
    """An attribute without fonts by name and fine digits, and with short ids."""
    value = REFERENCE.sub(lambda match: match[1] + ids[match[2]], " ".join(value.split()))
    return FINE.sub("", FONT.sub("", value))


def _value(value: str, name: str) -> str:
    """An attribute with the page's colours, and ids of its own."""
    for stand_in, colour in STAND_INS.items():
        value = value.replace(stand_in, f"var(--{colour})")
    return REFERENCE.sub(rf"\g<1>{name}-\2", value)
