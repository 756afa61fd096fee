// What is known of the variable or edge that the reader chose.
import { heatTable, make } from "./elements.js";

export function showChoice(panel, view, what, choose) {
  panel.replaceChildren();
  if (!what) make("p", "", "Choose a variable or an edge.", panel);
  else if (what.node !== undefined) showVariable(panel, view, what.node, choose);
  else showEdge(panel, view, what.edge, choose);
  panel.scrollTop = 0;
}

function addChoice(list, texts, onClick) {
  const button = make("button", "", null, make("li", "", null, list));
  button.type = "button";
  for (const text of texts) make("span", "", text, button);
  button.addEventListener("click", onClick);
}

function showVariable(panel, view, k, choose) {
  const node = view.nodes[k];
  make("h3", "", node.name, panel);
  if (node.marginals.length) {
    make("h4", "", "Probabilities", panel);
    for (const [label, part] of node.marginals) {
      const bar = make("div", "bar", null, panel);
      make("span", "", label, bar).title = label;
      make("i", "", null, make("span", "", null, bar)).style.width = `${100 * part}%`;
      make("span", "", `${(100 * part).toFixed(part < 0.0995 ? 1 : 0)} %`, bar);
    }
  }
  make("h4", "", "Edges, strongest first", panel);
  const list = make("ol", "", null, panel);
  for (const e of [...view.neighbours[k]].reverse()) { // edges come weakest first
    const { ends, facts } = view.edges[e];
    const other = view.nodes[ends[0] === k ? ends[1] : ends[0]];
    addChoice(list, [other.name, facts[0][1]], () => choose({ edge: e }));
  }
}

function showEdge(panel, view, k, choose) {
  const edge = view.edges[k];
  make("h3", "", edge.ends.map((end) => view.nodes[end].name).join(" – "), panel);
  const facts = make("dl", "pairs", null, panel);
  for (const [name, value] of edge.facts) {
    make("dt", "", name, facts);
    make("dd", "", value, facts);
  }
  make("h4", "", "Which categories go together", panel);
  if (edge.table) showTable(make("div", "scroll", null, panel), edge.table);
  else make("p", "", "The page has the tables of stronger edges only.", panel);
  make("h4", "", "Its variables", panel);
  const list = make("ol", "", null, panel);
  for (const end of edge.ends) addChoice(list, [view.nodes[end].name], () => choose({ node: end }));
}

function showTable(host, { rows, columns, values, whole }) {
  heatTable(rows, columns, values, host);
  if (rows.length < whole[0] || columns.length < whole[1]) {
    make("p", "note", `The categories touched most, of ${whole[0]} by ${whole[1]}.`, host);
  }
}
