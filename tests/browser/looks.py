"""What can be measured of how a page looks and what it says to those who cannot see it."""

from typing import Any

from playwright.sync_api import Page

_OVERFLOW = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll("body *")].filter(each => each.getBoundingClientRect().right > width + 1)
    .map(each => each.outerHTML.slice(0, 120)).slice(0, 5);
}"""

_CUT = """() => [...document.querySelectorAll(".card:not(pre)")]
  .filter(each => getComputedStyle(each).overflowX !== "visible" && each.scrollWidth > each.clientWidth + 1)
  .map(each => {
    const edge = each.getBoundingClientRect().left + each.clientWidth;
    const cut = [...each.querySelectorAll("*")].find(inner => inner.getBoundingClientRect().right > edge + 1);
    return (cut ?? each).outerHTML.slice(0, 160);
  })"""

_STRAYED = """() => [...document.querySelectorAll("td")].filter(cell => {
  const label = getComputedStyle(cell, "::before");
  if (["none", "normal"].includes(label.content) || !cell.checkVisibility()) return false;
  const value = document.createRange(), edge = cell.getBoundingClientRect().left + parseFloat(label.width);
  value.selectNodeContents(cell);
  return [...value.getClientRects()].some(each => each.width > 0 && each.left < edge - 1);
}).map(each => each.outerHTML.slice(0, 160))"""

_CONTRASTS = """() => {
  const pixel = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const parsed = new Map();
  const rgba = text => {
    if (!parsed.has(text)) {
      pixel.clearRect(0, 0, 1, 1);
      pixel.fillStyle = text;
      pixel.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
      parsed.set(text, [r, g, b, a / 255]);
    }
    return parsed.get(text);
  };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const ground = node => {
    if (!node) return rgba("canvas");
    const own = rgba(getComputedStyle(node).backgroundColor);
    return own[3] === 1 ? own : over(own, ground(node.parentElement));
  };
  const luminance = colour => {
    const [r, g, b] = colour.slice(0, 3).map(value => value / 255)
      .map(value => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const isLarge = style => {
    const size = parseFloat(style.fontSize);
    return size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700);
  };
  const told = (node, style, text) => {
    const below = ground(node), seen = over(rgba(style.color), below);
    const contrast = ratio(seen, below), wanted = isLarge(style) ? 3 : 4.5;
    return {text: text.trim().slice(0, 60), contrast: Math.round(contrast * 100) / 100, wanted};
  };
  const all = [];
  for (const node of document.querySelectorAll("body *")) {
    if (!node.checkVisibility({visibilityProperty: true, opacityProperty: true}) || node.disabled) continue;
    const own = [...node.childNodes].filter(child => child.nodeType === 3).map(child => child.data).join(" ");
    if (own.trim()) all.push(told(node, getComputedStyle(node), own));
    if (node.value && node.matches("input:not([type=checkbox], [type=hidden]), textarea"))
      all.push(told(node, getComputedStyle(node), node.value));
    if (node.placeholder) all.push(told(node, getComputedStyle(node, "::placeholder"), node.placeholder));
  }
  return all;
}"""

_FOCUS = """() => {
  const node = document.activeElement, style = getComputedStyle(node), box = node.getBoundingClientRect();
  return {
    tag: node.tagName.toLowerCase(), name: node.name || "", text: (node.innerText || node.value || "").trim(),
    order: [...document.querySelectorAll("*")].indexOf(node),
    isMarked: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    isInSight: box.width > 0 && box.right > 0 && box.bottom > 0 && box.left < innerWidth && box.top < innerHeight,
  };
}"""

_COUNT_JUMPS = """
  window.jumps = [];
  new PerformanceObserver(list => list.getEntries().forEach(entry => {
    if (!entry.hadRecentInput) window.jumps.push(entry.value);
  })).observe({type: "layout-shift", buffered: true});
"""

_WAITING = """() => {
  const places = nodes => nodes.map(node => JSON.stringify(node.getBoundingClientRect()));
  const moved = [];
  for (const frame of document.querySelectorAll("body, main, main > div, main > div > div")) {
    for (const last of [...frame.children].slice(1).reverse()) {
      const above = [...frame.children].slice(0, [...frame.children].indexOf(last))
        .flatMap(each => [each, ...each.querySelectorAll("*")]);
      const before = places(above);
      last.remove();
      const after = places(above);
      moved.push(...above.filter((_, i) => before[i] !== after[i]).map(each => each.outerHTML.slice(0, 120)));
    }
  }
  return moved.slice(0, 5);
}"""

_CONTROLS = {"button", "checkbox", "combobox", "link", "radio", "searchbox", "textbox", "listbox"}


def overflowing(page: Page) -> list[str]:
    """The first elements that stick out on the right, when the document scrolls sideways."""
    found: list[str] = page.evaluate(_OVERFLOW)
    return found


def cut(page: Page) -> list[str]:
    """The first thing of each card and table that it hides, or that must be scrolled to."""
    found: list[str] = page.evaluate(_CUT)
    return found


def strayed(page: Page) -> list[str]:
    """The cells of which a part of the value stands in the column of the label, where a row is shown as a card."""
    found: list[str] = page.evaluate(_STRAYED)
    return found


def faint(page: Page) -> list[dict[str, Any]]:
    """Every text that stands out from its ground by less than WCAG's AA asks."""
    measured: list[dict[str, Any]] = page.evaluate(_CONTRASTS)
    assert measured, f"{page.url} has no text"
    return [text for text in measured if text["contrast"] < text["wanted"]]


def nameless(page: Page) -> list[str]:
    """The roles of controls that the accessibility tree has no name for."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    controls = [node for node in nodes if not node["ignored"] and node["role"]["value"] in _CONTROLS]
    assert controls, f"{page.url} has no controls"
    return [node["role"]["value"] for node in controls if not node.get("name", {}).get("value", "").strip()]


def focus(page: Page) -> dict[str, Any]:
    """Where the keyboard is, whether that is marked, and whether it is in sight."""
    found: dict[str, Any] = page.evaluate(_FOCUS)
    return found


def waiting(page: Page) -> list[str]:
    """The first elements whose place depends on what comes after them, so that a page that comes slowly jumps.

    Takes the page apart from its end: it is the last thing to ask of one.
    """
    found: list[str] = page.evaluate(_WAITING)
    return found


def watch_jumps(page: Page) -> None:
    """Count, from the next page on, every move of what is already shown that nobody's input caused."""
    page.add_init_script(_COUNT_JUMPS)


def jumps(page: Page) -> list[float]:
    found: list[float] = page.evaluate("window.jumps")
    return found
