// A line chart with one or two vertical axes, and the values under the pointer.
import { make } from "./elements.js";
import { draw } from "./network.js";

const CHART = { width: 720, height: 300, left: 62, right: 66, top: 14, bottom: 42 };

function ticks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

function short(value) {
  if (value === null || value === undefined) return "–";
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6)) return value.toExponential(1);
  return String(+value.toPrecision(4));
}

function axisScale(axis, from, to) {
  const known = axis.filter((value) => value !== null);
  let low = Math.min(...known), high = Math.max(...known);
  if (!(high > low)) { const pad = Math.abs(low) * 0.05 || 1; low -= pad; high += pad; }
  const scale = (value) => from + ((to - from) * (value - low)) / (high - low);
  return { scale, low, high };
}

export function drawChart(host, chart) {
  const { width, height, left, right, top, bottom } = CHART;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" }, host);
  const x = axisScale(chart.x, left, width - right);
  draw("path", { class: "frame", fill: "none", d: `M${left},${top}V${height - bottom}H${width - right}V${top}` }, svg);
  for (const value of ticks(x.low, x.high, 6)) {
    draw("text", { x: x.scale(value), y: height - bottom + 17, "text-anchor": "middle" }, svg).textContent = short(value);
  }
  draw("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, svg).textContent = chart.title;
  const legend = make("div", "legend", null, host);
  const lines = [];
  for (const side of ["left", "right"]) {
    const axis = chart[side];
    const values = axis.lines.flatMap((line) => line.values).concat(axis.from_zero ? [0] : []);
    const y = axisScale(values, height - bottom, top);
    const edge = side === "left" ? left - 8 : width - right + 8;
    for (const value of ticks(y.low, y.high, 5)) {
      const text = draw("text", { x: edge, y: y.scale(value) + 4, "text-anchor": side === "left" ? "end" : "start" }, svg);
      text.textContent = short(value);
    }
    const middle = (top + height - bottom) / 2, at = side === "left" ? 13 : width - 8;
    draw("text", { transform: `translate(${at},${middle}) rotate(-90)`, "text-anchor": "middle" }, svg).textContent = axis.title;
    for (const line of axis.lines) {
      let path = "", pen = "M";
      line.values.forEach((value, k) => {
        if (value === null) { pen = "M"; return; }
        path += `${pen}${x.scale(chart.x[k]).toFixed(1)},${y.scale(value).toFixed(1)}`;
        pen = "L";
      });
      draw("path", { d: path, fill: "none", stroke: line.colour, "stroke-width": 2, "stroke-dasharray": line.dashed ? "6 4" : "none" }, svg);
      const entry = make("span", "", null, legend);
      const swatch = make("i", line.dashed ? "dashed" : "", null, entry);
      swatch.style.borderColor = line.colour;
      const label = make("span", "", line.name, entry);
      lines.push({ line, label });
    }
  }
  followPointer(svg, chart, x, lines);
}

function followPointer(svg, chart, x, lines) {
  const { height, top, bottom, width } = CHART;
  const cursor = draw("path", { class: "cursor", d: "" }, svg);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * width;
    let best = 0;
    chart.x.forEach((value, k) => {
      if (Math.abs(x.scale(value) - at) < Math.abs(x.scale(chart.x[best]) - at)) best = k;
    });
    cursor.setAttribute("d", `M${x.scale(chart.x[best])},${top}V${height - bottom}`);
    for (const { line, label } of lines) label.textContent = `${line.name} ${short(line.values[best])}`;
  });
  svg.addEventListener("pointerleave", () => {
    cursor.setAttribute("d", "");
    for (const { line, label } of lines) label.textContent = line.name;
  });
}
