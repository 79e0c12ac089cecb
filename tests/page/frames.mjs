// Made-up frames: a day in which one model is under a wave, one is steady, and one sleeps.

/** A name that would break a page which took it for markup. */
export const HOSTILE = `</script><img src=x onerror="window.broken=1">&amp;`;

function variant(name, accelerator, gpus, cost, desired, ready, pending, why) {
  const action = desired > ready + pending ? "raise" : desired < ready + pending ? "lower" : "hold";
  const steps = [`base: ${ready} → ${ready}, starts from what was published`, `optimizer: ${ready} → ${desired}, ${why}`];
  return { name, accelerator, gpus, cost, desired, scaled_to: desired, ready, pending, action, why, steps };
}

function model(name, id, rate, servers, variants) {
  const load = servers > 0 ? rate / servers : 0;
  const late = Math.max(0, load - 7);
  const served = servers > 0 && rate > 0;
  return {
    name,
    id,
    rate,
    held: served ? Math.round(late * 12) : Math.round(rate * 3),
    queue: late * 4,
    kv_usage: Math.min(1, load / 9),
    first_token_p95_ms: served ? 220 + load * 40 + late * 900 : null,
    per_token_p95_ms: served ? 14 + load * 2.2 : null,
    slo_ms: [1000, 40],
    attainment: served ? Math.max(0, 1 - late * 0.2) : null,
    variants,
  };
}

function frame(seconds) {
  const wave = Math.max(0.5, 22 + 20 * Math.sin(seconds / 900) + 3 * Math.sin(seconds / 37));
  const wanted = Math.max(1, Math.ceil(wave / 7));
  const then = Math.max(1, Math.ceil((22 + 20 * Math.sin((seconds - 120) / 900)) / 7));
  const cheap = Math.min(4, wanted);
  const dear = Math.max(0, wanted - 4);
  const why = `demand ${wave.toFixed(1)} requests/s needs ${wanted} replicas; the cheaper variant goes first`;
  const ready = Math.min(4, then);
  const rest = Math.max(0, then - 4);
  const models = [
    model("llama-70b", "meta/llama-3.3-70b", wave, ready + rest, [
      variant("llama-l40s", "L40S", 4, 7.2, cheap, Math.min(cheap, ready), Math.max(0, cheap - ready), why),
      variant("llama-h100", "H100", 2, 9.8, dear, Math.min(dear, rest), Math.max(0, dear - rest), why),
    ]),
    model("qwen-8b", HOSTILE, 9 + Math.sin(seconds / 11), 2, [
      variant("qwen-a100", "A100", 1, 3.1, 2, 2, 0, "two replicas hold the load with the spare capacity that is asked for"),
    ]),
    model("idle", "idle", 0, 0, [variant("idle-l4", "L4", 1, 0.8, 0, 0, 0, "no request for 10 minutes; scaled to zero")]),
  ];
  const pods = models.flatMap((model) => model.variants);
  const sum = (read) => pods.reduce((total, variant) => total + read(variant) * (variant.ready + variant.pending), 0);
  const cost = sum((variant) => variant.cost);
  return {
    seconds,
    at: new Date(1767225600000 + seconds * 1000).toISOString(),
    models,
    cost_per_hour: cost,
    gpus_used: sum((variant) => variant.gpus),
    gpus_total: 40,
    fixed_cost: seconds > 300 ? (seconds / 3600) * 52 : null,
    rival: {
      name: "keda-epp",
      cost_per_hour: cost * 1.3,
      totals: { answered: Math.round(seconds * 30), failed: 0, good: Math.round(seconds * 26), cost: (seconds / 3600) * 43 },
    },
    totals: {
      requests: Math.round(seconds * 31),
      answered: Math.round(seconds * 30.5),
      failed: Math.round(seconds * 0.1),
      good: Math.round(seconds * 29.9),
      gpu_hours: (seconds / 3600) * 17,
      cost: (seconds / 3600) * 33,
      scalings: Math.floor(seconds / 400),
      first_scaling: seconds > 400 ? 61 : null,
    },
  };
}

/** Answers as the demo's own: two hours have passed, and a minute passes with every second. */
export function readings() {
  const began = Date.now();
  const distance = 15;
  const shot = (number) => ({ number, seconds: number * distance, frame: frame(number * distance) });
  return (after) => {
    const latest = 480 + Math.floor((Date.now() - began) / 250);
    const frames = [];
    for (let number = Math.max(1, after + 1); number <= latest; number++) frames.push(shot(number));
    return { run: "made-up", frames, latest: shot(latest) };
  };
}
