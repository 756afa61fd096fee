// Elements whose text comes from data: always set as text, never parsed as markup.

const MORE = [0, 114, 178];
const LESS = [213, 94, 0];

export function make(tag, className = "", text = null, parent = null) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== null) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

export function labelled(tag, className, label, parent = null) {
  const element = make(tag, className, label === "" ? "(empty)" : label, parent);
  if (label === "") element.classList.add("empty");
  element.title = label;
  return element;
}

export function share(p) {
  if (p > 0 && p < 0.0005) return "<.001";
  if (p < 1 && p > 0.9995) return ">.999";
  return p.toFixed(3).replace(/^0/, "");
}

// A number in about four digits, whole if it is large.
export function plain(x) {
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-4 || size >= 1e12)) return x.toExponential(3);
  return x.toLocaleString("en", size >= 1e3 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 });
}

export function signed(x, digits = 3) {
  const text = Math.abs(x).toFixed(digits);
  if (Number(text) === 0) return "0";
  return (x > 0 ? "+" : "−") + text.replace(/^0\./, ".");
}

// An interaction table on coloured cells; a value that is null is a pair that never occurs.
export function heatTable(rows, columns, values, parent) {
  const limit = Math.max(1e-12, ...values.flat().map((value) => Math.abs(value ?? 0)));
  const table = make("table", "heat", null, parent);
  const head = make("tr", "", null, table.createTHead());
  make("td", "", null, head);
  for (const label of columns) labelled("th", "", label, head);
  const body = table.createTBody();
  values.forEach((line, a) => {
    const row = make("tr", "", null, body);
    labelled("th", "", rows[a], row);
    line.forEach((value, b) => {
      const never = value === null;
      const cell = make("td", never ? "never" : "", never ? "never" : signed(value, 2), row);
      cell.title = `${rows[a]}, ${columns[b]}`;
      if (never) return;
      const part = Math.abs(value) / limit;
      const mixed = (value > 0 ? MORE : LESS).map((c) => Math.round(255 + (c - 255) * part));
      Object.assign(cell.style, { background: `rgb(${mixed})`, color: part > 0.65 ? "#fff" : "#222" });
    });
  });
  return table;
}
