// Evidence lives in the address: each change is an entry of the browser's history, so that the
// back button undoes it, and the address is the link to share.
import { Details } from "./details.js";
import { make, share } from "./elements.js";
import { Card } from "./marginals.js";
import { NetworkView } from "./network.js";

const AT_ONCE = 60; // cards; the others wait for a click
const LIGHT = [242, 239, 230]; // of no change
const DARK = [92, 42, 120]; // of the largest
const at = (id) => document.getElementById(id);

const model = await fetch("model").then((response) => response.json());
const { variables } = model;
const offsets = [0];
for (const { categories } of variables) offsets.push(offsets.at(-1) + categories.length);
const places = new Map(variables.map((variable, i) => [i, variable.name.toLowerCase()]));

let answer = null;
let selected = null;
let shown = AT_ONCE;
let depth = 0; // changes of evidence that can be undone
let queue = Promise.resolve();
const cards = new Map();

const handlers = { onSet: (i, k) => enqueue(() => toggle(i, k)), onSelect: (i) => enqueue(() => select(i)) };
const details = new Details(at("details"), variables, handlers);
const network = new NetworkView(at("network"), model.network, {
  hint: at("tip"),
  describe: tip,
  legend: at("samples"),
  rank: importance,
  margin: () => [24, 60, 40, 84], // names, buttons and the legend
  maxScale: 120,
  onChoice: (what) => { if (what) handlers.onSelect(network.nodes[what.node].variable); },
});
const nodeOf = new Map(network.nodes.map((node, k) => [node.variable, k]));

// One after the other: two quick clicks are two changes, the second on top of the first.
function enqueue(task) {
  queue = queue.then(task).catch((error) => complain(`The explorer's server does not answer (${error.message}). Is it still running?`));
}

async function ask(question) {
  const response = await fetch("marginals", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question),
  });
  const found = await response.json();
  return response.ok ? found : { refused: found.error };
}

function complain(text) {
  at("banner").textContent = text;
  at("banner").hidden = !text;
}

function describe(i, k) {
  return `${variables[i].name} = ${variables[i].categories[k]}`;
}

function address() {
  return answer.given.length ? `#given=${encodeURIComponent(answer.link)}` : "#";
}

async function change(pairs, refusal) {
  const found = await ask({ given: pairs });
  if (found.refused) return complain(`${refusal}: ${found.refused}`);
  complain("");
  answer = found;
  history.pushState({ depth: depth + 1 }, "", address());
  render();
}

async function toggle(i, k) {
  const others = answer.given.filter(([variable]) => variable !== i);
  const was = answer.given.find(([variable]) => variable === i);
  if (was?.[1] === k) return change(others, `Evidence about ${variables[i].name} was not taken back`);
  return change([...others, [i, k]], `${describe(i, k)} was not set`);
}

async function follow() {
  const link = new URLSearchParams(location.hash.slice(1).replaceAll("+", "%2B")).get("given") ?? "";
  let found = await ask({ link });
  complain(found.refused ? `The link's evidence was not set: ${found.refused}` : "");
  if (found.refused) found = answer ?? (await ask({ given: [] }));
  if (found.refused) return complain(found.refused);
  // An address that was typed over the page's own is one step more, on first sight it is none.
  if (history.state?.depth === undefined) history.replaceState({ depth: answer ? depth + 1 : 0 }, "");
  answer = found;
  history.replaceState(history.state, "", address()); // of what is shown, where the link was not
  render();
}

async function select(i) {
  selected = i;
  network.choose(nodeOf.has(i) ? { node: nodeOf.get(i) } : null);
  if (i === null) return details.hide();
  details.show(await fetch(`variable/${i}`).then((response) => response.json()));
  at("side").scrollTop = 0;
  bars(details.card, i);
}

function bars(card, i) {
  const given = new Map(answer.given);
  card.show(answer.probabilities.slice(offsets[i], offsets[i + 1]), answer.change[i], given.get(i), answer.numbers[i]);
}

function render() {
  chips();
  engine();
  paint();
  if (details.card) bars(details.card, selected);
  list();
  const query = answer.given.length ? `?given=${encodeURIComponent(answer.link)}` : "";
  at("as-csv").href = `marginals.csv${query}`;
  depth = history.state.depth;
  at("undo").disabled = depth === 0;
  at("clear").disabled = !answer.given.length;
  document.body.dataset.link = answer.link; // says that the page shows this evidence
}

function chips() {
  const found = answer.given.map(([i, k]) => {
    const chip = make("span", "chip", describe(i, k));
    const drop = make("button", "", "×");
    drop.setAttribute("aria-label", `Take back ${describe(i, k)}`);
    drop.addEventListener("click", () => handlers.onSet(i, k));
    chip.append(drop);
    return chip;
  });
  at("evidence").replaceChildren(...(found.length ? ["Given ", ...found] : [`No evidence: all bars show what the model expects by itself. ${model.shares}`.trim()]));
}

function engine() {
  const words = {
    exact: "exact",
    converged: "an approximation that converged",
    "not converged": "NOT CONVERGED: do not rely on these numbers",
  };
  const differs = answer.engine !== answer.prior_engine ? ` · without evidence: ${answer.prior_engine}` : "";
  const element = at("engine");
  element.className = answer.reliability.split(" ")[0];
  const what = answer.engine === answer.reliability ? "exact" : `${answer.engine}, ${words[answer.reliability]}`;
  element.textContent = `Inference: ${what} · ${Math.max(1, Math.round(answer.milliseconds))} ms${differs}`;
  element.title = answer.message;
}

function paint() {
  const given = new Map(answer.given);
  const how = at("colouring").value;
  const byChange = how === "change" || (how === "auto" && given.size > 0);
  const free = answer.change.filter((_, i) => !given.has(i));
  const largest = Math.max(0.02, ...free);
  const colours = network.nodes.map(({ variable }) => {
    const part = Math.min(1, answer.change[variable] / largest);
    return `rgb(${LIGHT.map((c, k) => Math.round(c + (DARK[k] - c) * part))})`;
  });
  network.paint(byChange ? colours : null, nodesOf(given.keys()));
  at("scale").hidden = !byChange;
  at("scale").querySelector("b").textContent = `changed by ${share(largest)}; ring: given`;
}

function ordered() {
  const text = at("search").value.trim().toLowerCase();
  const order = at("order").value;
  const found = variables.map((_, i) => i).filter((i) => places.get(i).includes(text));
  const given = new Set(answer.given.map(([i]) => i));
  const first = (a, b) => given.has(b) - given.has(a);
  if (order === "name") found.sort((a, b) => variables[a].name.localeCompare(variables[b].name));
  if (order === "change") found.sort((a, b) => first(a, b) || answer.change[b] - answer.change[a] || a - b);
  // A name that is the text, or starts with it, comes before one that only has it inside.
  const fit = (i) => (places.get(i) === text ? 2 : places.get(i).startsWith(text) ? 1 : 0);
  return text ? found.sort((a, b) => fit(b) - fit(a)) : found;
}

function list() {
  const found = ordered();
  const visible = found.slice(0, shown);
  for (const i of visible) {
    if (!cards.has(i)) cards.set(i, new Card(variables[i], i, handlers));
    bars(cards.get(i), i);
  }
  at("marginals").replaceChildren(...visible.map((i) => cards.get(i).element));
  at("list-title").textContent = at("search").value.trim() ? `${found.length.toLocaleString("en")} found` : "All variables";
  at("more").hidden = found.length <= shown;
  at("more").textContent = `Show more (${(found.length - visible.length).toLocaleString("en")} left)`;
}

function nodesOf(found) {
  return new Set([...found].map((i) => nodeOf.get(i)).filter((k) => k !== undefined));
}

// What is selected is named before what is given or found, and that before neighbours.
function importance(k) {
  const near = network.neighbours[k].some((e) => network.edges[e].ends.includes(network.chosen?.node));
  return (network.chosen?.node === k ? 4 : 0) + (network.marked.has(k) ? 2 : 0) + (network.matches.has(k) ? 2 : 0) + (near ? 1 : 0);
}

function tip({ node }) {
  if (!answer) return null;
  const i = network.nodes[node].variable;
  const rows = variables[i].categories.map((label, k) => [answer.probabilities[offsets[i] + k], label, variables[i].prior[k]]);
  rows.sort((a, b) => b[0] - a[0]);
  const lines = rows.slice(0, 6).map(([p, label, q]) => `${label === "" ? "(empty)" : label}: ${share(p)} (before ${share(q)})`);
  const count = network.neighbours[node].length;
  return [variables[i].name, ...lines, `${count} neighbour${count === 1 ? "" : "s"}`].join("\n");
}

function search() {
  shown = AT_ONCE;
  const text = at("search").value.trim();
  network.match(nodesOf(text ? ordered() : []));
  list();
}

function limit() {
  const total = network.edges.length;
  const drawn = network.hide(Math.round((1 - at("strongest").value / 100) * total));
  const alone = variables.length - network.nodes.length;
  at("drawn").textContent = `${drawn.toLocaleString("en")} of ${model.n_edges.toLocaleString("en")} edges`
    + (alone ? `; ${alone.toLocaleString("en")} variables without a drawn edge are in the list only` : "");
}

at("search").addEventListener("input", () => enqueue(search));
at("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter") enqueue(() => (ordered().length ? select(ordered()[0]) : null));
});
at("order").addEventListener("change", () => enqueue(list));
at("colouring").addEventListener("change", () => enqueue(paint));
at("strongest").addEventListener("input", limit);
at("more").addEventListener("click", () => { shown += AT_ONCE; enqueue(list); });
at("undo").addEventListener("click", () => history.back());
at("clear").addEventListener("click", () => enqueue(() => change([], "The evidence was not cleared")));
at("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    at("copy").textContent = "Copied";
    setTimeout(() => { at("copy").textContent = "Copy link"; }, 1500);
  } catch {
    prompt("Copy this address:", location.href);
  }
});
at("zoom-in").addEventListener("click", () => network.zoom(1.4));
at("zoom-out").addEventListener("click", () => network.zoom(1 / 1.4));
at("fit").addEventListener("click", () => network.fit());
addEventListener("popstate", () => enqueue(follow));

at("facts").textContent = `${variables.length.toLocaleString("en")} variables, ${model.n_edges.toLocaleString("en")} edges`;
limit();
enqueue(follow);
