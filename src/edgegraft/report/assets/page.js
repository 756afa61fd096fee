// Joins the controls of the page to what they control.
import { drawChart } from "./chart.js";
import { NetworkView } from "./network.js";
import { showChoice } from "./panel.js";

function read(id) { return JSON.parse(document.getElementById(id).textContent); }

function describeChoice(view, what) {
  if (what.node !== undefined) {
    const count = view.neighbours[what.node].filter((e) => !view.edges[e].hidden).length;
    return `${view.nodes[what.node].name}: ${count} ${count === 1 ? "edge" : "edges"}`;
  }
  const { ends, facts } = view.edges[what.edge];
  const told = facts.slice(0, 3).map(([name, value]) => `${name} ${value}`).join(", ");
  return `${ends.map((end) => view.nodes[end].name).join(" – ")}: ${told}`;
}

function startNetwork() {
  const svg = document.querySelector("#picture svg");
  if (!svg) return;
  const byId = (id) => document.getElementById(id);
  const panel = byId("panel"), find = byId("find"), weakest = byId("weakest");
  const choose = (what) => {
    view.choose(what);
    showChoice(panel, view, what, choose);
  };
  const data = read("network-data");
  const extent = (axis) => Math.max(1, ...data.nodes.map((node) => node[axis]));
  const high = Math.max(320, svg.clientWidth * extent("y") / extent("x")); // the shape of the network
  byId("picture").style.height = `min(72vh, 46rem, ${Math.round(high)}px)`;
  const view = new NetworkView(svg, data, {
    hint: byId("hint"), describe: (what) => describeChoice(view, what), onChoice: choose, edgesToo: true, hideLonely: true, legend: byId("legend"),
  });
  for (const name of view.nodes.map((node) => node.name).sort()) {
    byId("variables").appendChild(document.createElement("option")).value = name;
  }
  const search = (finished) => {
    const wanted = find.value.trim().toLowerCase();
    const names = view.nodes.map((node) => node.name.toLowerCase());
    let found = names.indexOf(wanted);
    if (found < 0 && finished) found = names.findIndex((name) => name.includes(wanted));
    find.classList.toggle("unknown", Boolean(wanted) && !names.some((name) => name.includes(wanted)));
    if (wanted && found >= 0) choose({ node: found });
    else if (!wanted) choose(null);
  };
  find.addEventListener("input", () => search(false));
  find.addEventListener("keydown", (event) => {
    if (event.key === "Enter") search(true);
    if (event.key === "Escape") { find.value = ""; search(true); }
  });
  // The slider runs through the edges by rank, so that every step of it does something.
  const filter = () => {
    const total = view.edges.length;
    const left = view.hide(Math.max(0, Math.min(total - 1, Math.floor((weakest.value / 100) * total))));
    byId("count").textContent = `${left} of ${total} edges`;
  };
  weakest.addEventListener("input", filter);
  filter();
  byId("nearer").addEventListener("click", () => view.zoom(1.5));
  byId("farther").addEventListener("click", () => view.zoom(1 / 1.5));
  byId("whole").addEventListener("click", () => view.fit());
  window.addEventListener("beforeprint", () => view.fit());
}

function startSorting(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.addEventListener("click", () => {
    const falling = head.getAttribute("aria-sort") === "ascending" || (column > 0 && !head.hasAttribute("aria-sort"));
    const key = (row) => {
      const cell = row.cells[column];
      return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
    };
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      const [p, q] = [key(a), key(b)];
      const order = typeof p === "number" ? p - q : p.localeCompare(q);
      return falling ? -order : order;
    });
    table.tBodies[0].append(...rows);
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", falling ? "descending" : "ascending");
  }));
}

startNetwork();
const charts = read("chart-data");
document.querySelectorAll("[data-chart]").forEach((host) => drawChart(host, charts[host.dataset.chart]));
document.querySelectorAll("table.sortable").forEach(startSorting);
window.addEventListener("beforeprint", () => {
  document.querySelectorAll("details").forEach((details) => { details.open = true; });
});
