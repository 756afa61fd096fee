"use strict";
// What is known of the variable or edge that the reader chose. Names enter as text only.

function make(name, text, parent, className) {
  const element = document.createElement(name);
  if (text !== undefined && text !== null) element.textContent = text;
  if (className) element.className = className;
  if (parent) parent.appendChild(element);
  return element;
}

function showChoice(panel, view, what) {
  panel.replaceChildren();
  if (!what) make("p", "Choose a variable or an edge.", panel);
  else if (what.node !== undefined) showVariable(panel, view, what.node);
  else showEdge(panel, view, what.edge);
  panel.scrollTop = 0;
}

function showVariable(panel, view, k) {
  const node = view.nodes[k];
  make("h3", node.name, panel);
  if (node.marginals.length) {
    make("h4", "Probabilities", panel);
    for (const [label, share] of node.marginals) {
      const bar = make("div", null, panel, "bar");
      make("span", label, bar).title = label;
      const track = make("span", null, bar);
      make("i", null, track).style.width = `${100 * share}%`;
      make("span", `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`, bar);
    }
  }
  make("h4", "Edges, strongest first", panel);
  const list = make("ol", null, panel);
  const edges = [...view.neighbours[k]].sort((a, b) => view.edges[b].weight - view.edges[a].weight);
  for (const e of edges) {
    const edge = view.edges[e];
    const button = make("button", null, make("li", null, list));
    button.type = "button";
    make("span", view.nodes[edge.ends[0] === k ? edge.ends[1] : edge.ends[0]].name, button);
    make("span", edge.facts[0][1], button);
    button.addEventListener("click", () => view.choose({ edge: e }));
  }
}

function showEdge(panel, view, k) {
  const edge = view.edges[k];
  const title = make("h3", null, panel);
  title.append(view.nodes[edge.ends[0]].name, " – ", view.nodes[edge.ends[1]].name);
  const facts = make("dl", null, panel, "pairs");
  for (const [name, value] of edge.facts) {
    make("dt", name, facts);
    make("dd", value, facts);
  }
  make("h4", "Which categories go together", panel);
  if (edge.table) showTable(make("div", null, panel, "scroll"), edge.table);
  else make("p", "The page has the tables of stronger edges only.", panel);
  make("h4", "Its variables", panel);
  const list = make("ol", null, panel);
  for (const end of edge.ends) {
    const button = make("button", null, make("li", null, list));
    button.type = "button";
    make("span", view.nodes[end].name, button);
    button.addEventListener("click", () => view.choose({ node: end }));
  }
}

function showTable(host, table) {
  const limit = Math.max(1e-12, ...table.values.flat().map((value) => Math.abs(value ?? 0)));
  const heat = make("table", null, host, "heat");
  const head = make("tr", null, make("thead", null, heat));
  make("td", null, head);
  for (const label of table.columns) make("th", label, head);
  const body = make("tbody", null, heat);
  table.values.forEach((values, row) => {
    const line = make("tr", null, body);
    make("th", table.rows[row], line);
    for (const value of values) {
      const never = value === null;
      const text = never ? "never" : (value < 0 ? "−" : "+") + Math.abs(value).toFixed(2);
      const cell = make("td", text, line);
      const share = never ? 1 : Math.abs(value) / limit;
      cell.style.background = never ? "#222" : heatColour(value / limit);
      cell.style.color = share > 0.65 ? "#fff" : "#222";
    }
  });
  const shown = [table.rows.length, table.columns.length];
  if (shown[0] < table.whole[0] || shown[1] < table.whole[1]) {
    make("p", `The categories touched most, of ${table.whole[0]} by ${table.whole[1]}.`, host, "note");
  }
}

function heatColour(share) {
  const end = share > 0 ? [0, 114, 178] : [213, 94, 0];
  return `rgb(${end.map((c) => Math.round(255 + (c - 255) * Math.abs(share))).join(",")})`;
}
