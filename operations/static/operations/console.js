// The part of a page that renews itself keeps what its reader has open, and where the keyboard is in it.
"use strict";

const PLACES = "a[href], summary";

// Alike are links to the same address and words that open something: the same one again is that of the same number.
const alike = (part, node) =>
  [...part.querySelectorAll(PLACES)].filter(
    (each) => each.getAttribute("href") === node.getAttribute("href") && each.textContent === node.textContent,
  );

let kept = null;

document.addEventListener("htmx:beforeSwap", ({ target: part }) => {
  const focused = part.contains(document.activeElement) && document.activeElement.matches(PLACES);
  kept = {
    open: [...part.querySelectorAll("details")].map((details) => details.open),
    focused: focused ? document.activeElement : null,
    number: focused ? alike(part, document.activeElement).indexOf(document.activeElement) : -1,
  };
});

document.addEventListener("htmx:afterSwap", () => {
  const part = document.getElementById("live");
  if (!part || !kept) return;
  part.querySelectorAll("details").forEach((details, number) => (details.open = kept.open[number] ?? false));
  if (kept.focused) alike(part, kept.focused)[kept.number]?.focus({ preventScroll: true });
});
