// The variable that was selected: its bars, its neighbours and the tables of its edges.
import { heatTable, labelled, make } from "./elements.js";
import { Card } from "./marginals.js";

const OPEN = 3; // tables that are open from the start
const FEW = 30; // neighbours listed at first

function heatMap(neighbour, own, other) {
  const frame = make("div", "scroll");
  make("div", "note", `rows: ${own.name}; columns: ${other.name}`, frame);
  heatTable(neighbour.rows.map((k) => own.categories[k]), neighbour.columns.map((k) => other.categories[k]), neighbour.table, frame);
  const cut = [[own, neighbour.rows], [other, neighbour.columns]]
    .filter(([variable, kept]) => kept.length < variable.categories.length)
    .map(([variable, kept]) => `${kept.length} of ${variable.categories.length} categories of ${variable.name}`);
  if (cut.length) make("div", "note", `Only those with the largest entries: ${cut.join(", ")}.`, frame);
  return frame;
}

function neighbourRow(neighbour, own, other, open, onSelect) {
  const row = make("details");
  row.dataset.neighbour = neighbour.variable;
  const summary = make("summary");
  const name = labelled("button", "name", other.name);
  name.addEventListener("click", (event) => { event.preventDefault(); onSelect(neighbour.variable); });
  const sign = { 1: "+", "-1": "−" }[neighbour.sign] ?? "";
  const strength = neighbour.strength === null ? "forbids pairs" : `strength ${sign}${neighbour.strength.toPrecision(3)}`;
  const about = make("span", "moved", strength);
  if (neighbour.effect_low != null) about.title = `effect from ${neighbour.effect_low} to ${neighbour.effect_high} (interval of 95 %)`;
  summary.append(name, about);
  row.append(summary);
  row.addEventListener("toggle", () => {
    if (row.open && row.children.length === 1) row.append(heatMap(neighbour, own, other));
  });
  row.open = open;
  return row;
}

export class Details {
  constructor(element, variables, handlers) {
    Object.assign(this, { element, variables, handlers, card: null });
  }

  show(found) {
    const own = this.variables[found.variable];
    this.card = new Card(own, found.variable, this.handlers);
    const close = make("button", "", "Close");
    close.addEventListener("click", () => this.handlers.onSelect(null));
    const title = make("div", "title");
    title.append(make("span", "note", "Selected variable"), close);
    const count = found.neighbours.length;
    const head = make("h3", "", count ? `Neighbours (${count}), strongest first` : "It has no neighbours");
    this.element.replaceChildren(title, this.card.element, head);
    if (count) {
      this.element.append(make("p", "note", "Each table shows log-potentials whose rows and columns sum to zero: blue pairs go together, orange ones avoid each other, all other variables being equal."));
    }
    this.list(found, own, 0, FEW);
    this.element.hidden = false;
  }

  list(found, own, from, to) {
    found.neighbours.slice(from, to).forEach((neighbour, k) => {
      const other = this.variables[neighbour.variable];
      this.element.append(neighbourRow(neighbour, own, other, from + k < OPEN, this.handlers.onSelect));
    });
    const left = found.neighbours.length - to;
    if (left <= 0) return;
    const more = make("button", "", `${left} more neighbours`);
    more.addEventListener("click", () => { more.remove(); this.list(found, own, to, found.neighbours.length); });
    this.element.append(more);
  }

  hide() {
    this.card = null;
    this.element.hidden = true;
    this.element.replaceChildren();
  }
}
