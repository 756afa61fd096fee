// Bars of a variable's categories, with a line where each was without evidence.
import { labelled, make, plain, share, signed } from "./elements.js";

const SHOWN_STATES = 12;
const SHOWN_LEVELS = 32; // of ordered columns, whose list should have no gaps

export class Card {
  constructor(variable, i, { onSet, onSelect }) {
    this.variable = variable;
    this.i = i;
    this.onSet = onSet;
    this.all = variable.categories.length <= (variable.kind === "nominal" ? SHOWN_STATES : SHOWN_LEVELS);
    this.element = make("div", "card");
    this.element.dataset.variable = i;
    const title = make("div", "title");
    this.name = labelled("button", "name", variable.name);
    this.name.addEventListener("click", () => onSelect(i));
    this.moved = make("span", "moved");
    title.append(this.name, this.moved);
    this.numbers = make("div", "note numbers");
    this.states = make("div", "states");
    this.element.append(title, this.numbers, this.states);
    this.rows = new Map();
  }

  show(now, change, given, numbers) {
    this.last = [now, change, given, numbers];
    this.numbers.textContent = numbers ? this.summary(numbers, given !== undefined || change >= 0.0005) : "";
    this.moved.textContent = given !== undefined ? "given" : change < 0.0005 ? "" : `change ${share(change)}`;
    const shown = this.chosen(now);
    if (shown.length !== this.rows.size || shown.some((k) => !this.rows.has(k))) this.build(shown);
    for (const [k, row] of this.rows) this.update(row, now[k], this.variable.prior[k], given === k);
  }

  summary([mean, low, median, high], moved) {
    const before = moved ? `; without evidence mean ${plain(this.variable.numbers[0])}` : "";
    return `mean ${plain(mean)}, median ${plain(median)}, 90 % from ${plain(low)} to ${plain(high)}${before}`;
  }

  chosen(now) {
    const every = this.variable.categories.map((_, k) => k);
    if (this.all) return every;
    const size = (k) => Math.max(now[k], this.variable.prior[k]);
    return every.sort((a, b) => size(b) - size(a)).slice(0, SHOWN_STATES).sort((a, b) => a - b);
  }

  build(shown) {
    this.states.replaceChildren();
    this.rows = new Map();
    for (const k of shown) {
      const row = { element: make("button", "state"), bar: make("span", "bar"), mark: make("span", "mark"),
        value: make("span", "value"), delta: make("span", "delta") };
      const track = make("span", "track");
      track.append(row.bar, row.mark);
      row.element.append(labelled("span", "label", this.variable.categories[k]), track, row.value, row.delta);
      row.element.dataset.category = k;
      row.element.addEventListener("click", () => this.onSet(this.i, k));
      this.states.append(row.element);
      this.rows.set(k, row);
    }
    const left = this.variable.categories.length - shown.length;
    if (left > 0) {
      const more = make("button", "", `${left.toLocaleString("en")} more categories`);
      more.addEventListener("click", () => { this.all = true; this.show(...this.last); });
      this.states.append(more);
    }
  }

  update(row, p, q, given) {
    row.element.classList.toggle("given", given);
    row.element.setAttribute("aria-pressed", String(given));
    row.element.dataset.probability = p;
    row.bar.style.width = `${100 * p}%`;
    row.mark.style.left = `${100 * q}%`;
    row.value.textContent = share(p);
    const delta = signed(p - q);
    row.delta.textContent = delta === "0" ? "" : delta;
    row.delta.className = `delta ${p > q ? "up" : "down"}`;
  }
}
