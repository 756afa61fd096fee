"use strict";
// The network: lines and dots that keep their size while the reader zooms, names that give way.
// Positions are moved by one transform; only what must keep its size is touched on a zoom.

const SVG = "http://www.w3.org/2000/svg";
const SHAPES = {
  circle: "M1,0A1,1 0 1 1 -1,0A1,1 0 1 1 1,0Z",
  square: "M-.9,-.9H.9V.9H-.9Z",
  triangle: "M0,-1.15L1.05,.75H-1.05Z",
};

function draw(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (parent) parent.appendChild(element);
  return element;
}

const MOST_LINES = 600; // that names keep clear of; a picture with more has lines everywhere

// Whether a straight line passes through a box: what is left of it after cutting at each side.
function crosses(a, b, left, top, w, h) {
  let from = 0, to = 1;
  for (const [start, step, low, high] of [[a[0], b[0] - a[0], left, left + w], [a[1], b[1] - a[1], top, top + h]]) {
    if (Math.abs(step) < 1e-9) { if (start < low || start > high) return false; continue; }
    const [p, q] = [(low - start) / step, (high - start) / step];
    from = Math.max(from, Math.min(p, q));
    to = Math.min(to, Math.max(p, q));
  }
  return from < to;
}

class NetworkView {
  constructor(svg, hint, data, onChoice) {
    Object.assign(this, { svg, hint, onChoice, nodes: data.nodes, edges: data.edges });
    this.threshold = 0;
    this.chosen = null;
    this.sure = Math.min(25, this.nodes.length / 8); // so many names may lie on dots
    this.neighbours = this.nodes.map(() => []);
    this.edges.forEach((edge, k) => edge.ends.forEach((end) => this.neighbours[end].push(k)));
    this.order = this.nodes.map((_, k) => k).sort((a, b) => this.nodes[b].size - this.nodes[a].size);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = "12px " + getComputedStyle(document.body).fontFamily;
    this.build(pen);
    this.listen();
    new ResizeObserver(() => this.fit()).observe(svg);
    this.fit();
  }

  build(pen) {
    this.scene = draw("g", {}, this.svg);
    const lines = draw("g", {}, this.scene);
    const grips = draw("g", {}, this.scene);
    const dots = draw("g", {}, this.scene);
    const names = draw("g", {}, this.scene);
    const crowd = Math.sqrt(Math.min(1, Math.max(0.15, 200 / this.edges.length)));
    this.edges.forEach((edge, k) => {
      const [a, b] = edge.ends.map((end) => this.nodes[end]);
      const place = { x1: a.x, y1: a.y, x2: b.x, y2: b.y, "vector-effect": "non-scaling-stroke" };
      edge.line = draw("line", {
        ...place, class: "edge", stroke: edge.colour,
        "stroke-width": (0.6 + 4.4 * edge.weight) * (0.45 + 0.55 * crowd),
        "stroke-opacity": Math.min(0.9, (0.25 + 0.65 * edge.weight) * (0.5 + 0.5 * crowd) + 0.1),
      }, lines);
      edge.grip = draw("line", { ...place, class: "grip", "data-edge": k }, grips);
    });
    const full = Math.min(12, Math.max(5, 15 - 3.2 * Math.log10(this.nodes.length + 1)));
    this.nodes.forEach((node, k) => {
      node.radius = full * (0.35 + 0.65 * node.size);
      node.dot = draw("path", {
        d: SHAPES[node.shape], class: "dot", fill: node.colour, "data-node": k,
        "vector-effect": "non-scaling-stroke",
      }, dots);
      node.text = draw("text", {}, names);
      node.short = node.name.length > 32 ? node.name.slice(0, 31) + "…" : node.name;
      node.text.textContent = node.short;
      node.width = pen.measureText(node.short).width + 6;
    });
  }

  fit() {
    const box = this.svg.getBoundingClientRect();
    if (!box.width || !box.height) return;
    const wide = Math.max(...this.nodes.map((node) => node.x), 1);
    const high = Math.max(...this.nodes.map((node) => node.y), 1);
    const edge = Math.min(70, box.width / 8);
    this.least = Math.min((box.width - 2 * edge) / wide, (box.height - 2 * edge) / high);
    this.scale = this.least;
    this.left = (box.width - wide * this.scale) / 2;
    this.top = (box.height - high * this.scale) / 2;
    this.place();
  }

  place(moved) {
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

  // Names of strong variables first; a name that would lie on another one is not shown, nor, but
  // for the strongest, one that would lie on a dot.
  placeNames() {
    const box = this.svg.getBoundingClientRect();
    const taken = [], dots = [], shown = this.edges.filter((edge) => !edge.hidden);
    const at = (k) => [this.nodes[k].x * this.scale + this.left, this.nodes[k].y * this.scale + this.top];
    const lines = shown.length > MOST_LINES ? [] : shown.map((edge) => edge.ends.map(at));
    for (const node of this.nodes) {
      const x = node.x * this.scale + this.left, y = node.y * this.scale + this.top;
      node.inView = !node.hidden && x > 0 && y > 0 && x < box.width && y < box.height;
      if (node.inView) {
        const reach = node.radius - 0.5; // a name may touch a dot
        dots.push({ x: x - reach, y: y - reach, side: 2 * reach });
      }
    }
    const chosen = this.chosen && this.chosen.node !== undefined ? [this.chosen.node] : [];
    for (const k of new Set([...chosen, ...this.order])) {
      const node = this.nodes[k];
      const spot = node.inView && !node.faint && this.freeSpot(node, box, taken, dots, lines);
      node.text.style.display = spot ? "" : "none";
      if (!spot) continue;
      taken.push(spot);
      const corner = [(spot.x + 3 - this.left) / this.scale, (spot.y + 12 - this.top) / this.scale];
      node.text.setAttribute("transform", `translate(${corner}) scale(${1 / this.scale})`);
    }
  }

  freeSpot(node, box, taken, dots, lines) {
    const w = node.width, h = 15, r = node.radius;
    const x = node.x * this.scale + this.left, y = node.y * this.scale + this.top;
    let best = null, fewest = taken.length < this.sure ? Infinity : 1;
    const spots = [
      [x + r, y - h / 2], [x - r - w, y - h / 2], [x - w / 2, y - r - h], [x - w / 2, y + r],
      [x, y - r - h], [x - w, y - r - h], [x, y + r], [x - w, y + r],
    ];
    for (const [left, top] of spots) {
      if (left < 0 || top < 0 || left + w > box.width || top + h > box.height) continue;
      if (taken.some((t) => left < t.x + t.w && t.x < left + w && top < t.y + h && t.y < top + h)) continue;
      let covered = 0;
      for (const dot of dots) {
        if (left < dot.x + dot.side && dot.x < left + w && top < dot.y + dot.side && dot.y < top + h) covered++;
      }
      for (const [a, b] of lines) if (crosses(a, b, left, top, w, h)) covered += 1 / MOST_LINES;
      if (covered < fewest) { best = { x: left, y: top, w }; fewest = covered; }
    }
    return best;
  }

  zoom(factor, x, y) {
    const box = this.svg.getBoundingClientRect();
    const cx = x === undefined ? box.width / 2 : x, cy = y === undefined ? box.height / 2 : y;
    const scale = Math.min(60 * this.least, Math.max(0.5 * this.least, this.scale * factor));
    this.left = cx - (cx - this.left) * (scale / this.scale);
    this.top = cy - (cy - this.top) * (scale / this.scale);
    this.scale = scale;
    this.place();
  }

  // Show only edges at least this strong, as a share of the strongest.
  filter(threshold) {
    this.threshold = threshold;
    let count = 0;
    for (const edge of this.edges) {
      edge.hidden = edge.weight < threshold;
      edge.line.style.display = edge.grip.style.display = edge.hidden ? "none" : "";
      count += edge.hidden ? 0 : 1;
    }
    this.nodes.forEach((node, k) => {
      node.hidden = this.edges.length > 0 && this.neighbours[k].every((e) => this.edges[e].hidden);
      node.dot.style.display = node.hidden ? "none" : "";
    });
    this.place(true);
    return count;
  }

  // What stands out: a variable with its neighbours, an edge with its ends, or everything.
  highlight(what) {
    const nodes = new Set(), edges = new Set();
    if (what && what.node !== undefined) {
      nodes.add(what.node);
      for (const e of this.neighbours[what.node]) {
        if (this.edges[e].hidden) continue;
        edges.add(e);
        this.edges[e].ends.forEach((end) => nodes.add(end));
      }
    } else if (what) {
      edges.add(what.edge);
      this.edges[what.edge].ends.forEach((end) => nodes.add(end));
    }
    this.edges.forEach((edge, k) => edge.line.classList.toggle("faint", !!what && !edges.has(k)));
    this.nodes.forEach((node, k) => {
      node.faint = !!what && !nodes.has(k);
      node.dot.classList.toggle("faint", node.faint);
      node.dot.classList.toggle("chosen", !!this.chosen && this.chosen.node === k);
    });
    this.place(true);
  }

  choose(what, centre) {
    this.chosen = what;
    if (centre && what && what.node !== undefined) {
      const box = this.svg.getBoundingClientRect(), node = this.nodes[what.node];
      this.left = box.width / 2 - node.x * this.scale;
      this.top = box.height / 2 - node.y * this.scale;
    }
    this.highlight(what);
    this.onChoice(what);
  }

  target(event) {
    const { node, edge } = event.target.dataset || {};
    if (node !== undefined) return { node: +node };
    return edge !== undefined ? { edge: +edge } : null;
  }

  listen() {
    const pointers = new Map();
    let travelled = 0;
    const local = (event) => {
      const box = this.svg.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...local(event));
    }, { passive: false });
    // One finger scrolls the page up and down; two are for the picture.
    this.svg.addEventListener("touchmove", (event) => {
      if (event.touches.length > 1 && event.cancelable) event.preventDefault();
    }, { passive: false });
    this.svg.addEventListener("pointerdown", (event) => {
      pointers.set(event.pointerId, local(event));
      if (pointers.size === 1) travelled = 0;
    });
    this.svg.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId), now = local(event);
      if (!before) return this.hover(event, now);
      const other = [...pointers].find(([id]) => id !== event.pointerId);
      if (other) {
        const gap = (point) => Math.hypot(point[0] - other[1][0], point[1] - other[1][1]) || 1;
        this.left += (now[0] - before[0]) / 2; // what lies between the fingers stays there
        this.top += (now[1] - before[1]) / 2;
        this.zoom(gap(now) / gap(before), (now[0] + other[1][0]) / 2, (now[1] + other[1][1]) / 2);
      } else {
        this.left += now[0] - before[0];
        this.top += now[1] - before[1];
        this.place(true);
      }
      travelled += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (travelled > 4 && !this.svg.hasPointerCapture(event.pointerId)) {
        this.svg.setPointerCapture(event.pointerId);
        this.svg.classList.add("dragging");
        this.hint.style.display = "none";
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
    this.svg.addEventListener("click", (event) => {
      if (travelled <= 4) this.choose(this.target(event));
    });
  }

  hover(event, at) {
    const what = event && this.target(event);
    const key = what ? JSON.stringify(what) : "";
    if (key !== this.hovered) {
      this.hovered = key;
      this.highlight(what || this.chosen);
    }
    this.hint.style.display = what ? "block" : "none";
    if (!what) return;
    if (what.node !== undefined) {
      const count = this.neighbours[what.node].filter((e) => !this.edges[e].hidden).length;
      this.hint.textContent = `${this.nodes[what.node].name}: ${count} ${count === 1 ? "edge" : "edges"}`;
    } else {
      const edge = this.edges[what.edge];
      const facts = edge.facts.slice(0, 3).map(([name, value]) => `${name} ${value}`).join(", ");
      this.hint.textContent = edge.ends.map((end) => this.nodes[end].name).join(" – ") + `: ${facts}`;
    }
    const box = this.svg.getBoundingClientRect();
    const left = Math.min(at[0] + 14, box.width - this.hint.offsetWidth - 4);
    const top = at[1] + 18 + this.hint.offsetHeight > box.height ? at[1] - this.hint.offsetHeight - 10 : at[1] + 18;
    this.hint.style.left = `${Math.max(0, left)}px`;
    this.hint.style.top = `${Math.max(0, top)}px`;
  }
}
