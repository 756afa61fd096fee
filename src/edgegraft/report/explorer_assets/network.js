// The network as SVG: dots and lines keep their size when zoomed, names appear where there is room.

const NS = "http://www.w3.org/2000/svg";
const LIGHT = [242, 239, 230];
const DARK = [92, 42, 120];
const MARGIN = { left: 24, right: 70, top: 48, bottom: 76 }; // room for names, buttons and the legend

function svg(tag, parent) {
  const element = document.createElementNS(NS, tag);
  parent.append(element);
  return element;
}

function short(name) {
  const points = Array.from(name);
  return points.length > 24 ? points.slice(0, 23).join("") + "…" : name;
}

export class Network {
  constructor(element, view, variables, { onSelect, onHover }) {
    Object.assign(this, { element, variables, onHover, selected: null, hiding: 0, matches: new Set() });
    this.thin = Math.min(1, Math.max(0.3, Math.sqrt(150 / view.edges.length))); // many lines: thinner
    this.lines = view.edges.map((edge) => ({ ...edge, element: this.line(edge) }));
    this.nodes = new Map();
    for (const node of view.nodes) this.nodes.set(node.variable, this.dot(node, onSelect));
    for (const node of this.nodes.values()) node.text = this.text(node);
    this.neighbours = new Map([...this.nodes.keys()].map((v) => [v, new Set()]));
    for (const { ends: [a, b] } of this.lines) {
      this.neighbours.get(a).add(b);
      this.neighbours.get(b).add(a);
    }
    this.order = [...this.nodes.values()].sort((a, b) => b.size - a.size);
    this.listen();
    new ResizeObserver(() => (this.touched ? this.draw() : this.fit())).observe(element);
    this.fit();
  }

  line(edge) {
    const element = svg("line", this.element);
    element.setAttribute("stroke", edge.colour);
    element.setAttribute("stroke-width", (0.8 + 3.2 * edge.weight) * this.thin);
    element.setAttribute("stroke-opacity", (0.3 + 0.55 * edge.weight) * Math.max(0.5, this.thin));
    return element;
  }

  dot(node, onSelect) {
    const element = svg("circle", this.element);
    element.setAttribute("r", 4 + 7 * Math.sqrt(node.size));
    element.dataset.variable = node.variable;
    element.addEventListener("pointerenter", (event) => { this.hovered = node.variable; this.emphasise(); this.onHover(node.variable, event); });
    element.addEventListener("pointerleave", () => { this.hovered = undefined; this.emphasise(); this.onHover(null); });
    element.addEventListener("click", () => { if (!this.dragged) onSelect(node.variable); });
    return { ...node, element };
  }

  text(node) {
    const element = svg("text", this.element);
    element.textContent = short(this.variables[node.variable].name);
    return { element, width: 6.4 * Array.from(element.textContent).length };
  }

  fit() {
    const nodes = this.order;
    const xs = nodes.map((n) => n.x);
    const ys = nodes.map((n) => n.y);
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const { clientWidth: width, clientHeight: height } = this.element;
    if (!nodes.length || !width || !height) return;
    const across = width - MARGIN.left - MARGIN.right;
    const down = height - MARGIN.top - MARGIN.bottom;
    const room = [across / Math.max(right - left, 1e-9), down / Math.max(bottom - top, 1e-9)];
    this.scale = Math.max(1e-3, Math.min(...room, 120));
    this.shift = [MARGIN.left + (across - this.scale * (left + right)) / 2, MARGIN.top + (down - this.scale * (top + bottom)) / 2];
    this.touched = false;
    this.draw();
  }

  zoom(factor, x = this.element.clientWidth / 2, y = this.element.clientHeight / 2) {
    if (this.scale === undefined) return;
    const scale = Math.max(1e-3, Math.min(1e4, this.scale * factor));
    this.shift = [x - (x - this.shift[0]) * scale / this.scale, y - (y - this.shift[1]) * scale / this.scale];
    this.scale = scale;
    this.touched = true;
    this.soon();
  }

  centre(variable) {
    const node = this.nodes.get(variable);
    if (!node || this.scale === undefined) return;
    const [x, y] = this.spot(node);
    const { clientWidth: width, clientHeight: height } = this.element;
    if (x > 60 && x < width - 60 && y > 40 && y < height - 70) return;
    this.shift = [this.shift[0] + width / 2 - x, this.shift[1] + height / 2 - y];
    this.touched = true;
    this.soon();
  }

  listen() {
    this.element.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-0.0016 * event.deltaY), ...this.local(event));
    }, { passive: false });
    this.pointers = new Map(); // where each finger, or the mouse while its button is down, is
    this.element.addEventListener("pointerdown", (event) => {
      if (!this.pointers.size) this.dragged = false;
      this.pointers.set(event.pointerId, this.local(event));
    });
    this.element.addEventListener("pointermove", (event) => this.move(event));
    const end = (event) => {
      this.pointers.delete(event.pointerId);
      if (!this.pointers.size) this.element.classList.remove("dragging");
    };
    for (const kind of ["pointerup", "pointercancel", "pointerleave"]) this.element.addEventListener(kind, end);
    this.element.addEventListener("dblclick", (event) => { if (event.target === this.element) this.fit(); });
  }

  local(event) {
    const box = this.element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  // One pointer moves the picture; of two, what lies between them stays between them.
  move(event) {
    const from = this.pointers.get(event.pointerId);
    if (!from || !this.shift) return;
    if (!event.buttons) { this.pointers.delete(event.pointerId); return; }
    const to = this.local(event);
    const step = [to[0] - from[0], to[1] - from[1]];
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (!other && !this.dragged && Math.hypot(...step) < 4) return;
    this.dragged = this.touched = true;
    this.element.classList.add("dragging");
    const part = other ? 0.5 : 1;
    this.shift = [this.shift[0] + part * step[0], this.shift[1] + part * step[1]];
    if (other) {
      const gap = (point) => Math.max(1, Math.hypot(point[0] - other[0], point[1] - other[1]));
      this.zoom(gap(to) / gap(from), (to[0] + other[0]) / 2, (to[1] + other[1]) / 2);
    }
    this.pointers.set(event.pointerId, to);
    this.soon();
  }

  soon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  spot(node) {
    return [this.scale * node.x + this.shift[0], this.scale * node.y + this.shift[1]];
  }

  draw() {
    if (this.scale === undefined) return;
    for (const node of this.order) {
      node.at = this.spot(node);
      node.element.setAttribute("cx", node.at[0]);
      node.element.setAttribute("cy", node.at[1]);
    }
    for (const { ends: [a, b], element } of this.lines) {
      const [from, to] = [this.nodes.get(a).at, this.nodes.get(b).at];
      element.setAttribute("x1", from[0]);
      element.setAttribute("y1", from[1]);
      element.setAttribute("x2", to[0]);
      element.setAttribute("y2", to[1]);
    }
    this.name();
  }

  // Names of the most important variables first, each where it meets no other.
  name() {
    const near = this.neighbours.get(this.selected) ?? new Set();
    const rank = (n) => (n.variable === this.selected ? 4 : 0) + (this.given?.has(n.variable) ? 2 : 0)
      + (this.matches.has(n.variable) ? 2 : 0) + (near.has(n.variable) ? 1 : 0);
    const cells = new Map();
    const { clientWidth: width, clientHeight: height } = this.element; // read before anything is written
    for (const node of [...this.order].sort((a, b) => rank(b) - rank(a))) {
      const [x, y] = node.at;
      const radius = 4 + 7 * Math.sqrt(node.size);
      const box = [x + radius + 2, y - 7, x + radius + 2 + node.text.width, y + 7];
      const inside = x > -80 && y > -20 && x < width + 20 && y < height + 20;
      const free = inside && this.claim(cells, box);
      node.text.element.style.display = free ? "" : "none";
      node.text.element.setAttribute("x", box[0]);
      node.text.element.setAttribute("y", y + 4);
    }
  }

  claim(cells, [left, top, right, bottom]) {
    const keys = [];
    for (let i = Math.floor(left / 80); i <= Math.floor(right / 80); i++) {
      for (let j = Math.floor(top / 20); j <= Math.floor(bottom / 20); j++) keys.push(`${i},${j}`);
    }
    for (const key of keys) {
      for (const [l, t, r, b] of cells.get(key) ?? []) {
        if (left < r && l < right && top < b && t < bottom) return false;
      }
    }
    for (const key of keys) cells.set(key, [...(cells.get(key) ?? []), [left, top, right, bottom]]);
    return true;
  }

  emphasise() {
    const centre = this.hovered ?? this.selected;
    const near = this.neighbours.get(centre);
    for (const node of this.order) {
      // Colours that tell of change are to be seen on every variable, whatever is selected.
      const apart = near ? node.variable !== centre && !near.has(node.variable) : this.matches.size > 0 && !this.matches.has(node.variable);
      const faint = apart && !(this.telling && this.hovered === undefined);
      node.element.classList.toggle("faint", faint);
      node.text.element.classList.toggle("faint", faint);
      node.element.classList.toggle("selected", node.variable === this.selected);
      node.element.classList.toggle("found", this.matches.has(node.variable));
    }
    this.lines.forEach(({ ends, element }, k) => {
      const own = near !== undefined && ends.includes(centre);
      element.classList.toggle("faint", near !== undefined && !own);
      element.classList.toggle("own", own);
      element.style.display = k < this.hiding ? "none" : "";
    });
  }

  select(variable) {
    this.selected = variable;
    this.emphasise();
    if (variable !== null) this.centre(variable);
    this.soon();
  }

  highlight(matches) {
    this.matches = matches;
    this.emphasise();
    this.soon();
  }

  // Edges come weakest first.
  limit(part) {
    this.hiding = Math.round((1 - part) * this.lines.length);
    this.emphasise();
    return this.lines.length - this.hiding;
  }

  paint(change, given, largest) {
    this.given = given;
    this.telling = change !== null;
    for (const node of this.order) {
      const part = change ? Math.min(1, change[node.variable] / largest) : 0;
      const mixed = LIGHT.map((c, k) => Math.round(c + (DARK[k] - c) * part));
      node.element.setAttribute("fill", change ? `rgb(${mixed.join(",")})` : node.colour);
      node.element.classList.toggle("observed", given.has(node.variable));
    }
    this.emphasise();
    if (this.scale !== undefined) this.name(); // what is given is named before others
  }
}
