
// What is shown, and where it comes from.

/** Most frames that are kept here; then every other one goes. */
const FRAMES = 1200;
/** Milliseconds between two questions. */
const PAUSE = 500;

/** A film in the document itself, instead of frames that come. */
const recording = document.getElementById("film") ? JSON.parse(document.getElementById("film").textContent) : null;
const known = { run: null, number: 0, frames: [], latest: null };
const shown = { models: new Map(), names: null, fleet: null };

const find = (id) => document.getElementById(id);

/** An element with a text; texts of the world are only ever set as text. */
function made(tag, text = "", kind = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

const amount = (value) => (value >= 1000 ? short(value) : value.toFixed(2));
const money = (value) => (recording ? amount(value) : `$${amount(value)}`);
const percent = (share) => (share === null || share === undefined ? "–" : `${(share * 100).toFixed(1)} %`);
const judged = (share) => (share === null || share === undefined ? "" : share >= 0.99 ? "good" : share >= 0.9 ? "warn" : "bad");

/** Cost per hour of the pods of a variant. */
const cost = (variant) => variant.cost * (variant.ready + variant.pending);

/** A figure that a PodAutoscaler does not state. */
const stated = (value, text) => (value === null ? "–" : text);

/** Figures of a recording: no request was seen, so none is judged. */
function recordedTiles(frame) {
  const variants = frame.models.flatMap((model) => model.variants);
  const sum = (read) => variants.reduce((sum, variant) => sum + (read(variant) ?? 0), 0);
  return [
    ["Cost", `${money(frame.cost_per_hour)}/h`, `${money(recording.cost)} in this recording`],
    ["Replicas", String(sum((variant) => variant.scaled_to)), `${sum((variant) => variant.desired)} desired, ${sum((variant) => variant.ready)} ready`],
    ["GPUs", short(sum((variant) => variant.gpus * variant.scaled_to)), "of all replicas"],
    ["Counts changed", short(recording.changes), `in ${span(known.latest.seconds)}`],
    ["Models", String(frame.models.filter((model) => !model.facts).length), `${variants.length} targets`],
  ];
}

function tiles(frame) {
  const entries = recording ? recordedTiles(frame) : liveTiles(frame);
  const list = find("tiles");
  list.replaceChildren(
    ...entries.map(([name, value, note, kind]) => {
      const group = made("div");
      const figure = made("dd", value, kind ?? "");
      figure.append(made("small", note));
      group.append(made("dt", name), figure);
      return group;
    }),
  );
}

function liveTiles(frame) {
  const totals = frame.totals;
  const ended = totals.answered + totals.failed;
  const kept = ended > 0 ? totals.good / ended : null;
  const { fixed_cost: fixed, rival } = frame;
  const saved = fixed > 0 ? 1 - totals.cost / fixed : null;
  const entries = [
    ["Cost", `${money(frame.cost_per_hour)}/h`, `${money(totals.cost)} so far`],
    ["Against a fixed fleet", saved === null ? "–" : `${saved > 0 ? "−" : "+"}${Math.abs(saved * 100).toFixed(0)} %`, saved === null ? "not found yet" : `the smallest that keeps the SLO costs ${money(fixed)}`],
    ["Requests within SLO", percent(kept), `${short(totals.good)} of ${short(ended)}`, judged(kept)],
    ["Requests", short(totals.requests), `${short(totals.failed)} refused or lost`],
    ["GPUs in use", `${frame.gpus_used} of ${frame.gpus_total}`, `${short(totals.gpu_hours)} GPU-hours`],
    ["Scalings", short(totals.scalings), totals.first_scaling === null ? "none yet" : `the first after ${span(totals.first_scaling)}`],
  ];
  if (rival) {
    const other = rival.totals;
    const ended = other.answered + other.failed;
    const share = ended > 0 ? other.good / ended : null;
    entries.splice(3, 0, [`${rival.name}, same load`, percent(share), `within SLO, for ${money(other.cost)}`, judged(share)]);
  }
  return entries;
}

/** Latency in milliseconds: the mean in a recording, else the 95th percentile. */
const latency = {
  words: recording ? "Mean latency in engines, without the wait at routers" : "95th percentile of latency",
  first: (model) => (recording ? model.first_token_mean_ms : model.first_token_p95_ms),
  between: (model) => (recording ? model.per_token_mean_ms : model.per_token_p95_ms),
};
const shareOf = (value, limit) => (value === null || !limit ? null : (value / limit) * 100);

class Model {
  constructor(model) {
    this.section = made("section");
    this.section.setAttribute("aria-label", model.name);
    const head = made("div", "", "head");
    this.facts = made("p", "", "facts");
    head.append(made("h2", model.name), made("p", model.id === model.name ? "" : model.id ?? "", "id"), this.facts);
    const area = made("div", "", "plots");
    this.section.append(head, area);
    find("models").append(this.section);

    const variants = model.variants.map((variant, place) => ({ name: variant.name, key: place % 6 }));
    this.replicas = new Plot(
      area,
      "Replicas: ready, and desired (dashed); a dot is a decision, click it for its steps",
      variants.flatMap(({ name, key }) => [
        { label: name, key, stepped: true },
        { label: "desired", key, stepped: true, dashed: true },
      ]),
      { whole: true, least: 2 },
    );
    this.queue = new Plot(
      area,
      "Waiting requests",
      [
        { label: "at the router", key: 1 },
        { label: "per server", key: 0 },
      ],
      { whole: true },
    );
    this.all = [this.replicas, this.queue];
    if (!model.facts) {
      this.load = new Plot(area, "Load", [{ label: "requests/s", key: 2 }], { whole: true });
      this.latency = new Plot(
        area,
        `${latency.words}, in % of the SLO`,
        [
          { label: "first token", key: 3 },
          { label: "between tokens", key: 4 },
          { label: "SLO", key: "limit", dashed: true },
        ],
        { unit: " %", least: 120 },
      );
      this.all.push(this.load, this.latency);
    }
    this.decision = made("div", "", "decision");
    this.decision.setAttribute("role", "status");
    this.section.append(this.decision);
    this.table(model);
  }

  table(model) {
    const table = made("table");
    const columns = ["Variant", "GPUs", "Cost", "Desired", "Scaled to", "Ready", "Pending", "Cost now", "Last decision", "Why"];
    const numbers = new Set([2, 3, 4, 5, 6, 7]);
    const head = made("tr");
    head.append(
      ...columns.map((name, place) => {
        const cell = made("th", name, numbers.has(place) ? "number" : "");
        cell.scope = "col";
        return cell;
      }),
    );
    const top = made("thead");
    top.append(head);
    const body = made("tbody");
    this.rows = model.variants.map(() => {
      const row = made("tr");
      const cells = columns.map((_, place) => {
        const cell = made(place === 0 ? "th" : "td", "", numbers.has(place) ? "number" : place === 9 ? "why" : "");
        if (place === 0) cell.scope = "row";
        return cell;
      });
      row.append(...cells);
      body.append(row);
      return cells;
    });
    table.append(top, body);
    const scroll = made("div", "", "scroll");
    scroll.append(table);
    this.section.append(scroll);
  }

  /** The present. */
  show(model) {
    const facts = [
      `KV cache ${percent(model.kv_usage)}`,
      ` · first token${recording ? " in engines" : ""} ${short(latency.first(model))} of ${short(model.slo_ms[0])} ms`,
      ` · between tokens ${short(latency.between(model))} of ${short(model.slo_ms[1])} ms`,
    ];
    if (!recording) facts.unshift(made("span", `SLO kept ${percent(model.attainment)}`, judged(model.attainment)), " · ");
    if (model.broken) facts.push(" · ", made("span", `load ended: ${model.broken}`, "bad"));
    this.facts.replaceChildren(...(model.facts ? [model.facts] : facts));
    model.variants.forEach((variant, place) => {
      const texts = [
        variant.name,
        stated(variant.gpus, `${variant.gpus} × ${variant.accelerator}`),
        stated(variant.cost, `${money(variant.cost ?? 0)}/h`),
        ...[variant.desired, variant.scaled_to, variant.ready, variant.pending].map((count) => String(count ?? "–")),
        stated(variant.cost, `${money(cost(variant))}/h`),
        variant.action,
        variant.why,
      ];
      texts.forEach((text, column) => {
        const cell = this.rows[place][column];
        if (cell.textContent !== text) cell.textContent = text;
      });
    });
  }

  /** The past: this model in every frame. */
  draw(times, models) {
    const of = (read) => models.map((model) => (model ? read(model) : null));
    const variants = this.rows.map((_, place) => [
      of((model) => model.variants[place]?.ready ?? null),
      of((model) => model.variants[place]?.desired ?? null),
    ]);
    this.replicas.set(times, variants.flat());
    this.replicas.mark(decisions(times, models), (mark) => this.explain(mark));
    this.queue.set(times, [of((model) => model.held), of((model) => model.queue)]);
    if (!this.load) return;
    this.load.set(times, [of((model) => model.rate)]);
    this.latency.set(times, [
      of((model) => shareOf(latency.first(model), model.slo_ms[0])),
      of((model) => shareOf(latency.between(model), model.slo_ms[1])),
      of(() => 100),
    ]);
  }

  /** The steps of a decision. */
  explain({ time, key, from, variant }) {
    const list = made("ol");
    list.append(...(variant.steps?.length ? variant.steps : [variant.why]).map((step) => made("li", step)));
    const title = made("h3", `${span(time)}: ${variant.name} ${from} → ${variant.desired}, ${variant.action}`, `k${key}`);
    this.decision.replaceChildren(title, list);
  }

  remove() {
    for (const plot of this.all) plots.delete(plot);
    this.section.remove();
  }
}

/** The moments at which a desired count of a model changed. */
function decisions(times, models) {
  const marks = [];
  const before = new Map();
  models.forEach((model, place) => {
    model?.variants.forEach((variant, at) => {
      const from = before.get(variant.name) ?? null;
      if (variant.desired === null) return;
      before.set(variant.name, variant.desired);
      if (from === null || from === variant.desired) return;
      marks.push({ time: times[place], value: variant.desired, key: at % 6, from, variant });
    });
  });
  return marks;
}

/** Makes the sections anew when models or variants are others than before. */
function arrange(frame) {
  const names = JSON.stringify(frame.models.map((model) => [model.name, model.variants.map((variant) => variant.name)]));
  if (!shown.fleet) {
    const area = find("fleet-plots");
    shown.fleet = {
      cost: new Plot(area, "Cost of the fleet per hour", [{ label: recording ? "cost/h" : "$/h", key: 0, stepped: true }]),
      kept: recording
        ? new Plot(area, `${latency.words} of the slowest model, in % of its SLO`, [{ label: "latency", key: 2 }], { unit: " %", least: 120 })
        : new Plot(area, "Requests of the last minute within SLO, all models", [{ label: "kept", key: 2 }], { unit: " %", least: 100 }),
    };
  }
  if (names === shown.names) return;
  shown.names = names;
  for (const model of shown.models.values()) model.remove();
  shown.models = new Map(frame.models.map((model) => [model.name, new Model(model)]));
}

/** The share over all models, weighed by their load; in a recording the latency of the slowest. */
function kept(frame) {
  if (recording) {
    const shares = frame.models.flatMap((model) => [shareOf(latency.first(model), model.slo_ms[0]), shareOf(latency.between(model), model.slo_ms[1])]);
    const seen = shares.filter((share) => share !== null);
    return seen.length > 0 ? Math.max(...seen) : null;
  }
  const judged = frame.models.filter((model) => model.attainment !== null && model.rate > 0);
  const rate = judged.reduce((sum, model) => sum + model.rate, 0);
  return rate > 0 ? (judged.reduce((sum, model) => sum + model.attainment * model.rate, 0) / rate) * 100 : null;
}

function show() {
  const latest = known.latest;
  if (!latest) return;
  const frame = latest.frame;
  arrange(frame);
  find("clock").textContent = `${span(latest.seconds)} since the ${recording ? "first recorded cycle" : "start"} · ${frame.at}`;
  tiles(frame);
  const last = known.frames.at(-1);
  const shots = last && last.number === latest.number ? known.frames : [...known.frames, latest];
  const times = shots.map((shot) => shot.seconds);
  stretch.from = times[0];
  stretch.to = Math.max(times.at(-1), times[0] + 1);
  shown.fleet.cost.set(times, [shots.map((shot) => shot.frame.cost_per_hour)]);
  shown.fleet.kept.set(times, [shots.map((shot) => kept(shot.frame))]);
  for (const model of frame.models) {
    const section = shown.models.get(model.name);
    section.show(model);
    section.draw(times, shots.map((shot) => shot.frame.models.find((other) => other.name === model.name)));
  }
  drawAll();
}

function take(reading) {
  if (reading.run !== known.run) {
    known.run = reading.run;
    known.frames = [];
  }
  known.frames.push(...reading.frames);
  while (known.frames.length > FRAMES) known.frames = known.frames.filter((_, place) => place % 2 === 0);
  known.number = known.frames.at(-1)?.number ?? 0;
  known.latest = reading.latest;
}

function say(state, text) {
  const element = find("state");
  element.className = state;
  if (element.textContent !== text) element.textContent = text;
}

async function ask() {
  try {
    const response = await fetch(`/frames?after=${known.number}`, { cache: "no-store" });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    const reading = await response.json();
    if (known.run !== null && reading.run !== known.run && known.number > 0) {
      known.number = 0;
      return ask();
    }
    take(reading);
    say("live", "live");
  } catch (error) {
    say("lost", "the demo has ended or cannot be reached");
    return;
  }
  show();
}

async function follow() {
  try {
    await ask();
  } finally {
    setTimeout(follow, document.hidden ? PAUSE * 4 : PAUSE);
  }
}

if (recording) {
  take(recording);
  show();
  say("", `recorded by wva ${recording.run}`);
} else {
  follow();
}
