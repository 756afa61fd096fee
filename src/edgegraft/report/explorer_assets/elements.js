// Elements whose text comes from data: always set as text, never parsed as markup.

export function make(tag, className = "", text = null) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== null) element.textContent = text;
  return element;
}

export function labelled(tag, className, label) {
  const element = make(tag, className, label === "" ? "(empty)" : label);
  if (label === "") element.classList.add("empty");
  element.title = label;
  return element;
}

export function share(p) {
  if (p > 0 && p < 0.0005) return "<.001";
  if (p < 1 && p > 0.9995) return ">.999";
  return p.toFixed(3).replace(/^0/, "");
}

export function signed(x, digits = 3) {
  const text = Math.abs(x).toFixed(digits);
  if (Number(text) === 0) return "0";
  return (x > 0 ? "+" : "−") + text.replace(/^0\./, ".");
}
