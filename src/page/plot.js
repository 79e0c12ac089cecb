
"use strict";

// Plots over time on a canvas. All plots show the same stretch of time, and the same moment when one
// of them is pointed at.

const plots = new Set();
const stretch = { from: 0, to: 1, pointed: null };

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Seconds as a short text: 45s, 12m, 3h20m. */
function span(seconds) {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return whole % 60 ? `${minutes}m${String(whole % 60).padStart(2, "0")}s` : `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  return minutes % 60 ? `${hours}h${String(minutes % 60).padStart(2, "0")}m` : `${hours}h`;
}

/** A number with as many digits as one reads. */
function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 10000) return `${(value / 1000).toFixed(size >= 100000 ? 0 : 1)}k`;
  if (size >= 100 || Number.isInteger(value)) return value.toFixed(0);
  return value.toFixed(size >= 10 ? 1 : 2);
}

/** The nearest of 1, 2 and 5 times a power of ten that is not below. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 5, 10].find((factor) => factor * power >= value * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** Distances between marks on the axis of time, in seconds. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];

class Plot {
  /** `lines`: [{ label, key, dashed?, stepped?, limit? }]; `unit` goes behind shown values. */
  constructor(parent, title, lines, { unit = "", whole = false, least = 0 } = {}) {
    this.lines = lines.map((line) => ({ ...line, values: [] }));
    this.times = [];
    this.unit = unit;
    this.whole = whole;
    this.least = least;
    const figure = document.createElement("figure");
    const heading = document.createElement("h3");
    heading.textContent = title;
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${title} over time`);
    const legend = document.createElement("ul");
    legend.className = "legend";
    for (const line of this.lines) {
      const entry = document.createElement("li");
      entry.className = `k${line.key}`;
      const swatch = document.createElement("i");
      if (line.dashed) swatch.className = "dashed";
      line.shown = document.createElement("b");
      entry.append(swatch, `${line.label} `, line.shown);
      legend.append(entry);
    }
    figure.append(heading, this.canvas, legend);
    parent.append(figure);
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => {
      stretch.pointed = null;
      drawAll();
    });
    plots.add(this);
  }

  /** `marks`: [{ time, value, key }], drawn as dots; `choose` is called with the one that is clicked. */
  mark(marks, choose) {
    if (!this.marks) {
      this.canvas.classList.add("choice");
      this.canvas.addEventListener("click", (event) => {
        this.point(event);
        const distance = (mark) => Math.abs(mark.time - stretch.pointed);
        const nearest = this.marks.reduce((best, mark) => (best && distance(best) <= distance(mark) ? best : mark), null);
        if (nearest) this.choose(nearest);
      });
    }
    this.marks = marks;
    this.choose = choose;
  }

  set(times, values) {
    this.times = times;
    this.lines.forEach((line, place) => (line.values = values[place]));
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const share = (event.clientX - box.left - this.left()) / Math.max(1, box.width - this.left() - 8);
    stretch.pointed = stretch.from + Math.min(1, Math.max(0, share)) * (stretch.to - stretch.from);
    drawAll();
  }

  left() {
    return 44;
  }

  /** The place of the last frame at or before a time. */
  place(time) {
    let low = 0;
    let high = this.times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  highest() {
    let highest = this.least;
    for (const line of this.lines) {
      for (const value of line.values) {
        if (value !== null && Number.isFinite(value) && value > highest) highest = value;
      }
    }
    return roundUp(highest > 0 ? highest : 1);
  }

  draw() {
    const ratio = window.devicePixelRatio || 1;
    const width = this.canvas.clientWidth;
    const height = this.canvas.clientHeight;
    if (width === 0 || height === 0) return;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const pen = this.canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const box = { left: this.left(), right: width - 8, top: 6, bottom: height - 18 };
    const top = this.highest();
    const x = (time) => box.left + ((time - stretch.from) / (stretch.to - stretch.from)) * (box.right - box.left);
    const y = (value) => box.bottom - (value / top) * (box.bottom - box.top);
    this.axes(pen, box, top, x, y);
    pen.save();
    pen.beginPath();
    pen.rect(box.left, box.top - 3, box.right - box.left + 3, box.bottom - box.top + 6);
    pen.clip();
    for (const line of this.lines) this.line(pen, line, x, y);
    for (const mark of this.marks ?? []) {
      pen.fillStyle = colour(`--c${mark.key}`);
      pen.beginPath();
      pen.arc(x(mark.time), y(mark.value), 3, 0, 2 * Math.PI);
      pen.fill();
    }
    pen.restore();
    this.pointer(pen, box, x, y);
  }

  axes(pen, box, top, x, y) {
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = colour("--soft");
    pen.strokeStyle = colour("--grid");
    pen.lineWidth = 1;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    const parts = this.whole && top < 4 ? top : top / roundUp(top / 4);
    for (let part = 0; part <= parts + 1e-9; part++) {
      const value = (top * part) / parts;
      const at = Math.round(y(value)) + 0.5;
      pen.beginPath();
      pen.moveTo(box.left, at);
      pen.lineTo(box.right, at);
      pen.stroke();
      pen.fillText(short(value), box.left - 6, at);
    }
    pen.textBaseline = "alphabetic";
    const length = stretch.to - stretch.from;
    const step = STEPS.find((step) => length / step <= Math.max(2, (box.right - box.left) / 80)) ?? 2592000;
    for (let time = Math.ceil(stretch.from / step) * step; time <= stretch.to; time += step) {
      const at = x(time);
      pen.textAlign = at > box.right - 16 ? "right" : "center";
      pen.fillText(span(time), at > box.right - 16 ? box.right : at, box.bottom + 14);
    }
  }

  line(pen, line, x, y) {
    pen.strokeStyle = colour(line.key === "limit" ? "--bad" : `--c${line.key}`);
    pen.lineWidth = line.dashed ? 1.25 : 1.75;
    pen.setLineDash(line.dashed ? [5, 4] : []);
    pen.beginPath();
    let before = null;
    this.times.forEach((time, place) => {
      const value = line.values[place];
      if (value === null || value === undefined || !Number.isFinite(value)) {
        before = null;
        return;
      }
      if (before === null) pen.moveTo(x(time), y(value));
      else {
        if (line.stepped) pen.lineTo(x(time), y(before));
        pen.lineTo(x(time), y(value));
      }
      before = value;
    });
    pen.stroke();
    pen.setLineDash([]);
  }

  /** Shows the values of the moment that is pointed at, else the last ones. */
  pointer(pen, box, x, y) {
    const pointed = stretch.pointed !== null;
    const place = pointed ? this.place(stretch.pointed) : this.times.length - 1;
    for (const line of this.lines) {
      const value = place < 0 ? null : line.values[place];
      const text = short(value) + (Number.isFinite(value ?? NaN) ? this.unit : "");
      if (line.shown.textContent !== text) line.shown.textContent = text;
    }
    if (!pointed || place < 0) return;
    const at = x(this.times[place]);
    pen.strokeStyle = colour("--soft");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(at, box.top);
    pen.lineTo(at, box.bottom);
    pen.stroke();
  }
}

let drawing = false;

/** Draws all plots before the next picture, once. */
function drawAll() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    for (const plot of plots) plot.draw();
  });
}

window.addEventListener("resize", drawAll);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
