// The network of a model, as the report and the explorer draw it: lines and dots that keep their
// size while the reader zooms, names that give way. Positions are moved by one transform; only what
// must keep its size is touched on a zoom.

const SVG = "http://www.w3.org/2000/svg";
const SHAPES = {
  circle: "M1,0A1,1 0 1 1 -1,0A1,1 0 1 1 1,0Z",
  square: "M-.9,-.9H.9V.9H-.9Z",
  triangle: "M0,-1.15L1.05,.75H-1.05Z",
};
const MAX_LINES = 600; // that names keep clear of; a picture with more has lines everywhere
const NAME_HEIGHT = 15;
const LONGEST_NAME = 32;
const UNSIGNED = "#8A8A8A";

export function draw(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (parent) parent.append(element);
  return element;
}

// Boxes [left, top, right, bottom], found by the cells of a grid.
class Boxes {
  constructor() { this.cells = new Map(); }

  cellsOf([left, top, right, bottom]) {
    const found = [];
    for (let i = Math.floor(left / 80); i <= Math.floor(right / 80); i++) {
      for (let j = Math.floor(top / 20); j <= Math.floor(bottom / 20); j++) found.push(`${i},${j}`);
    }
    return found;
  }

  add(box) {
    for (const key of this.cellsOf(box)) {
      if (this.cells.has(key)) this.cells.get(key).push(box);
      else this.cells.set(key, [box]);
    }
  }

  overlapping([left, top, right, bottom]) {
    const found = new Set();
    for (const key of this.cellsOf([left, top, right, bottom])) {
      for (const box of this.cells.get(key) ?? []) {
        if (left < box[2] && box[0] < right && top < box[3] && box[1] < bottom) found.add(box);
      }
    }
    return found.size;
  }
}

// Whether a straight line passes through a box: what is left of it after cutting at each side.
function crosses(a, b, [left, top, right, bottom]) {
  let from = 0, to = 1;
  for (const [start, step, low, high] of [[a[0], b[0] - a[0], left, right], [a[1], b[1] - a[1], top, bottom]]) {
    if (Math.abs(step) < 1e-9) { if (start < low || start > high) return false; continue; }
    const [p, q] = [(low - start) / step, (high - start) / step];
    from = Math.max(from, Math.min(p, q));
    to = Math.min(to, Math.max(p, q));
  }
  return from < to;
}

// What is chosen, or under the pointer, is {node: k}, {edge: k} or null. Options:
//   hint, describe(what)   an element that follows the pointer, and its text
//   onChoice(what)         called on a click; the owner then calls `choose`
//   rank(k)                nodes of higher rank are named before others
//   margin(width)          room left, right, above and below the network when it is fitted
//   maxScale               pixels per unit of length when it is fitted
//   edgesToo               edges can be chosen as well as nodes
//   hideLonely             nodes are hidden with the last of their edges
//   legend                 an element that explains widths, sizes and colours
export class NetworkView {
  constructor(svg, data, options) {
    this.rank = (k) => (this.chosen?.node === k ? 1 : 0);
    this.margin = (width) => [Math.min(48, width / 8), Math.min(64, width / 8), 24, 24];
    Object.assign(this, { svg, nodes: data.nodes, edges: data.edges, maxScale: Infinity }, options);
    Object.assign(this, { chosen: null, hovered: null, matches: new Set(), marked: new Set(), telling: false });
    this.neighbours = this.nodes.map(() => []);
    this.edges.forEach((edge, k) => edge.ends.forEach((end) => this.neighbours[end].push(k)));
    this.order = this.nodes.map((_, k) => k).sort((a, b) => this.nodes[b].size - this.nodes[a].size);
    this.build();
    if (this.legend) this.explain();
    this.listen();
    new ResizeObserver(() => (this.touched ? this.place() : this.fit())).observe(svg);
    this.fit();
  }

  build() {
    this.scene = draw("g", {}, this.svg);
    const [lines, grips, dots, names] = [0, 1, 2, 3].map(() => draw("g", {}, this.scene));
    const crowd = Math.sqrt(Math.min(1, Math.max(0.15, 200 / this.edges.length)));
    this.edges.forEach((edge, k) => {
      const [a, b] = edge.ends.map((end) => this.nodes[end]);
      const d = `M${a.x},${a.y}Q${edge.bend} ${b.x},${b.y}`;
      const place = { d, fill: "none", "vector-effect": "non-scaling-stroke" };
      edge.width = (0.6 + 4.4 * edge.weight) * (0.45 + 0.55 * crowd);
      edge.parts = [draw("path", {
        ...place, class: "edge", stroke: edge.colour,
        "stroke-width": edge.width,
        "stroke-opacity": Math.min(0.9, (0.25 + 0.65 * edge.weight) * (0.5 + 0.5 * crowd) + 0.1),
      }, lines)];
      if (this.edgesToo) edge.parts.push(draw("path", { ...place, class: "grip", "data-edge": k }, grips));
    });
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = "12px " + getComputedStyle(document.body).fontFamily;
    const full = Math.min(12, Math.max(5, 15 - 3.2 * Math.log10(this.nodes.length + 1)));
    this.nodes.forEach((node, k) => {
      node.radius = full * (0.35 + 0.65 * node.size);
      node.dot = draw("path", {
        d: SHAPES[node.shape], class: "dot", fill: node.colour, "data-node": k,
        "data-variable": node.variable, "vector-effect": "non-scaling-stroke",
      }, dots);
      const letters = Array.from(node.name);
      node.text = draw("text", {}, names);
      node.text.textContent = letters.length > LONGEST_NAME ? letters.slice(0, LONGEST_NAME - 1).join("") + "…" : node.name;
      node.width = pen.measureText(node.text.textContent).width + 6;
    });
  }

  // Samples of the thinnest and the thickest line, of the smallest and the largest dot that has an
  // edge, and what colours mean.
  explain() {
    const add = (width, text) => {
      const item = document.createElement("span");
      item.className = "sample";
      const svg = draw("svg", { width, height: 26, viewBox: `${-width / 2} -13 ${width} 26` }, item);
      item.append(text);
      this.legend.append(item);
      return svg;
    };
    const ends = (list) => list.filter((_, k) => k === 0 || k === list.length - 1);
    for (const edge of ends(this.edges)) {
      draw("path", { d: "M-14,0H14", stroke: "#8a8a8a", "stroke-width": edge.width }, add(32, `strength ${edge.strength ?? "∞"}`));
    }
    const total = (k) => this.neighbours[k].reduce((sum, e) => sum + (this.edges[e].strength ?? 0), 0);
    for (const k of ends([...this.order].reverse().filter((k) => this.neighbours[k].length))) {
      draw("path", { d: SHAPES.circle, fill: "#c4c4c4", transform: `scale(${this.nodes[k].radius})` }, add(28, `sum of strengths ${total(k).toPrecision(2)}`));
    }
    const known = new Set(this.edges.map((edge) => edge.colour));
    const signs = [["#0072B2", "positive"], ["#D55E00", "negative"], [UNSIGNED, "no sign"]].filter(([colour]) => known.has(colour));
    if (known.size > 1 || !known.has(UNSIGNED)) for (const [colour, text] of signs) draw("path", { d: "M-14,0H14", stroke: colour, "stroke-width": 3 }, add(32, text));
  }

  fit() {
    const { width, height } = this.svg.getBoundingClientRect();
    if (!width || !height) return;
    const wide = Math.max(...this.nodes.map((node) => node.x), 0);
    const high = Math.max(...this.nodes.map((node) => node.y), 0);
    const [left, right, top, bottom] = this.margin(width);
    const [across, down] = [width - left - right, height - top - bottom];
    this.least = Math.max(1e-3, Math.min(across / Math.max(wide, 1), down / Math.max(high, 1), this.maxScale));
    this.scale = this.least;
    this.left = left + (across - wide * this.scale) / 2;
    this.top = top + (down - high * this.scale) / 2;
    this.touched = false;
    this.place();
  }

  place(moved) {
    if (this.scale === undefined) return;
    this.scene.setAttribute("transform", `translate(${this.left},${this.top}) scale(${this.scale})`);
    if (!moved) {
      for (const node of this.nodes) {
        const size = node.radius / this.scale;
        node.dot.setAttribute("transform", `translate(${node.x},${node.y}) scale(${size})`);
      }
    }
    if (!this.waiting) {
      this.waiting = requestAnimationFrame(() => { this.waiting = 0; this.placeNames(); });
    }
  }

  spot(k) {
    return [this.nodes[k].x * this.scale + this.left, this.nodes[k].y * this.scale + this.top];
  }

  polyline({ ends, bend }) {
    const [a, b] = ends.map((end) => this.spot(end));
    const c = [bend[0] * this.scale + this.left, bend[1] * this.scale + this.top];
    const point = (t, i) => (1 - t) ** 2 * a[i] + 2 * t * (1 - t) * c[i] + t ** 2 * b[i];
    return [0, 0.2, 0.4, 0.6, 0.8, 1].map((t) => [point(t, 0), point(t, 1)]);
  }

  // Names of important variables first; a name that would lie on another one or on a dot is not
  // shown.
  placeNames() {
    const { width, height } = this.svg.getBoundingClientRect();
    const names = new Boxes(), dots = new Boxes();
    const shown = this.edges.filter((edge) => !edge.hidden);
    const lines = shown.length > MAX_LINES ? [] : shown.map((edge) => this.polyline(edge));
    this.nodes.forEach((node, k) => {
      const [x, y] = this.spot(k);
      node.inView = !node.hidden && x > 0 && y > 0 && x < width && y < height;
      const reach = node.radius - 0.5; // a name may touch a dot
      if (node.inView) dots.add([x - reach, y - reach, x + reach, y + reach]);
    });
    for (const k of [...this.order].sort((a, b) => this.rank(b) - this.rank(a))) {
      const node = this.nodes[k];
      const box = node.inView && !node.faint && this.freeBox(k, [width, height], names, dots, lines);
      node.text.style.display = box ? "" : "none";
      if (!box) continue;
      names.add(box);
      const corner = [(box[0] + 3 - this.left) / this.scale, (box[1] + 12 - this.top) / this.scale];
      node.text.setAttribute("transform", `translate(${corner}) scale(${1 / this.scale})`);
    }
  }

  freeBox(k, [width, height], names, dots, lines) {
    const { width: w, radius: r } = this.nodes[k], h = NAME_HEIGHT;
    const [x, y] = this.spot(k);
    let best = null, fewest = Infinity;
    const corners = [
      [x + r, y - h / 2], [x - r - w, y - h / 2], [x - w / 2, y - r - h], [x - w / 2, y + r],
      [x, y - r - h], [x - w, y - r - h], [x, y + r], [x - w, y + r],
    ];
    for (const [left, top] of corners) {
      const box = [left, top, left + w, top + h];
      if (left < 0 || top < 0 || box[2] > width || box[3] > height) continue;
      if (names.overlapping(box) || dots.overlapping(box)) continue;
      const covered = lines.filter((line) => line.some((b, i) => i && crosses(line[i - 1], b, box))).length;
      if (covered < fewest) { best = box; fewest = covered; }
    }
    return best;
  }

  zoom(factor, x, y) {
    if (this.scale === undefined) return;
    const { width, height } = this.svg.getBoundingClientRect();
    const scale = Math.min(60 * this.least, Math.max(0.5 * this.least, this.scale * factor));
    this.left = (x ??= width / 2) - (x - this.left) * (scale / this.scale);
    this.top = (y ??= height / 2) - (y - this.top) * (scale / this.scale);
    this.scale = scale;
    this.touched = true;
    this.place();
  }

  // Bring a node to the middle if it is near the border or beyond.
  reveal(k) {
    const { width, height } = this.svg.getBoundingClientRect();
    const [x, y] = this.spot(k);
    if (x > 60 && x < width - 60 && y > 40 && y < height - 70) return;
    this.left += width / 2 - x;
    this.top += height / 2 - y;
    this.touched = true;
  }

  // Hide so many of the edges, which come weakest first; return how many are left.
  hide(count) {
    this.edges.forEach((edge, k) => {
      edge.hidden = k < count;
      for (const part of edge.parts) part.style.display = edge.hidden ? "none" : "";
    });
    if (this.hideLonely) {
      this.nodes.forEach((node, k) => {
        node.hidden = count > 0 && this.neighbours[k].every((e) => this.edges[e].hidden);
        node.dot.style.display = node.hidden ? "none" : "";
      });
    }
    this.emphasise();
    return this.edges.length - count;
  }

  choose(what) {
    this.chosen = what;
    if (what?.node !== undefined && this.scale !== undefined) this.reveal(what.node);
    this.emphasise();
  }

  match(nodes) {
    this.matches = nodes;
    this.emphasise();
  }

  // Colours in place of the nodes' own (null: their own), and nodes to mark.
  paint(colours, marked) {
    Object.assign(this, { marked, telling: colours !== null });
    this.nodes.forEach((node, k) => node.dot.setAttribute("fill", colours ? colours[k] : node.colour));
    this.emphasise();
  }

  // What stands out: a variable with its neighbours, an edge with its ends, matches, or everything.
  emphasise() {
    const what = this.hovered ?? this.chosen;
    const edges = new Set(what?.edge !== undefined ? [what.edge] : []);
    if (what?.node !== undefined) {
      for (const e of this.neighbours[what.node]) if (!this.edges[e].hidden) edges.add(e);
    }
    const nodes = new Set(what ? [...edges].flatMap((e) => this.edges[e].ends) : this.matches);
    if (what?.node !== undefined) nodes.add(what.node);
    this.edges.forEach((edge, k) => {
      edge.parts[0].classList.toggle("faint", !!what && !edges.has(k));
      edge.parts[0].classList.toggle("own", edges.has(k));
    });
    this.nodes.forEach((node, k) => {
      // Colours that mean something are seen on every node, unless the pointer asks for one.
      node.faint = nodes.size > 0 && !nodes.has(k) && !(this.telling && !this.hovered);
      node.dot.classList.toggle("faint", node.faint);
      node.dot.classList.toggle("chosen", this.chosen?.node === k);
      node.dot.classList.toggle("found", this.matches.has(k));
      node.dot.classList.toggle("marked", this.marked.has(k));
    });
    this.place(true);
  }

  target(event) {
    const { node, edge } = event.target.dataset ?? {};
    if (node !== undefined) return { node: +node };
    return edge !== undefined ? { edge: +edge } : null;
  }

  local(event) {
    const box = this.svg.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  listen() {
    const pointers = new Map(); // where each finger, or the mouse while its button is down, is
    let travelled = 0;
    this.svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...this.local(event));
    }, { passive: false });
    // One finger may scroll the page; two are for the picture.
    this.svg.addEventListener("touchmove", (event) => {
      if (event.touches.length > 1 && event.cancelable) event.preventDefault();
    }, { passive: false });
    this.svg.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, this.local(event));
      if (pointers.size === 1) travelled = 0;
    });
    this.svg.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId), now = this.local(event);
      if (!before) return this.hover(this.target(event), now);
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      this.move(before, now, other);
      travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (travelled > 4 && !this.svg.hasPointerCapture(event.pointerId)) {
        this.svg.setPointerCapture(event.pointerId);
        this.svg.classList.add("dragging");
        this.hint.hidden = true;
      }
      pointers.set(event.pointerId, now);
    });
    const end = (event) => {
      pointers.delete(event.pointerId);
      this.svg.classList.remove("dragging");
    };
    this.svg.addEventListener("pointerup", end);
    this.svg.addEventListener("pointercancel", end);
    this.svg.addEventListener("pointerleave", () => this.hover(null));
    this.svg.addEventListener("click", (event) => { if (travelled <= 4) this.onChoice(this.target(event)); });
    this.svg.addEventListener("dblclick", (event) => { if (!this.target(event)) this.fit(); });
  }

  // One pointer moves the picture; of two, what lies between them stays between them.
  move(before, now, other) {
    const part = other ? 0.5 : 1;
    this.left += part * (now[0] - before[0]);
    this.top += part * (now[1] - before[1]);
    this.touched = true;
    if (!other) return this.place(true);
    const gap = (point) => Math.hypot(point[0] - other[0], point[1] - other[1]) || 1;
    this.zoom(gap(now) / gap(before), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
  }

  hover(what, at) {
    if (JSON.stringify(what) !== JSON.stringify(this.hovered)) {
      this.hovered = what;
      this.emphasise();
    }
    const text = what && this.describe(what);
    this.hint.hidden = !text;
    if (!text) return;
    this.hint.textContent = text;
    const { width, height } = this.svg.getBoundingClientRect();
    const left = Math.min(at[0] + 14, width - this.hint.offsetWidth - 4);
    const below = at[1] + 18 + this.hint.offsetHeight <= height;
    this.hint.style.left = `${Math.max(0, left)}px`;
    this.hint.style.top = `${Math.max(0, below ? at[1] + 18 : at[1] - this.hint.offsetHeight - 10)}px`;
  }
}
