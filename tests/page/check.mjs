// Opens the page in a headless Chromium by way of its DevTools protocol, over a pipe: no library.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { HOSTILE, readings } from "./frames.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "../../src/page");
const pictures = join(here, "../../target/page");

function chromium() {
  const names = ["chromium", "chromium-browser", "google-chrome", "chromium-headless-shell", "chrome-headless-shell"];
  for (const name of [process.env.CHROMIUM, ...names].filter(Boolean)) {
    if (spawnSync(name, ["--version"]).status === 0) return name;
  }
  console.error("no Chromium found: install one, or name it in $CHROMIUM");
  process.exit(2);
}

/** Serves the document as the demo does, and made-up frames. */
async function madeUp() {
  const read = (name) => readFileSync(join(assets, name), "utf8");
  const style = read("page.css");
  const script = read("plot.js") + read("page.js");
  const document = read("page.html").replaceAll("/* title */", "made-up frames").replace("/* style */", () => style).replace("/* script */", () => script);
  const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
  const policy =
    `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; connect-src 'self'; ` +
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
  const frames = readings();
  const server = createServer((request, response) => {
    const url = new URL(request.url, "http://localhost");
    if (url.pathname === "/frames") {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(frames(Number(url.searchParams.get("after")))));
    } else if (url.pathname === "/") {
      response.setHeader("content-type", "text/html; charset=utf-8");
      response.setHeader("content-security-policy", policy);
      response.end(document);
    } else {
      response.statusCode = 404;
      response.end();
    }
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const close = () => {
    server.close();
    // A browser keeps its connection, and would be answered further on.
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${server.address().port}/`, close };
}

/** A browser, driven by commands and read by events. */
class Browser {
  constructor() {
    this.home = mkdtempSync(join(tmpdir(), "wva-page-"));
    const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe", `--user-data-dir=${this.home}`];
    this.process = spawn(chromium(), [...flags, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    this.waiting = new Map();
    this.events = [];
    this.next = 1;
    let rest = "";
    this.process.stdio[4].setEncoding("utf8").on("data", (text) => {
      const parts = (rest + text).split("\0");
      rest = parts.pop();
      for (const part of parts) this.receive(JSON.parse(part));
    });
  }

  receive(message) {
    if (message.id === undefined) {
      this.events.push(message);
      return;
    }
    const { done, failed } = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.error) failed(new Error(message.error.message));
    else done(message.result);
  }

  ask(method, params = {}, sessionId = this.session) {
    const id = this.next++;
    this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
    return new Promise((done, failed) => this.waiting.set(id, { done, failed }));
  }

  async open(url) {
    const { targetId } = await this.ask("Target.createTarget", { url: "about:blank" }, undefined);
    const attached = await this.ask("Target.attachToTarget", { targetId, flatten: true }, undefined);
    this.session = attached.sessionId;
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await this.ask(`${domain}.enable`);
    await this.ask("Page.navigate", { url });
  }

  async value(expression) {
    const { result, exceptionDetails } = await this.ask("Runtime.evaluate", { expression, returnByValue: true });
    if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.text}`);
    return result.value;
  }

  /** `act` comes before each look: a browser drops input while it lays a page out. */
  async eventually(what, expression, act = async () => {}) {
    for (let look = 0; look < 150; look++) {
      await act();
      if (await this.value(expression)) return;
      await pause(100);
    }
    throw new Error(`not seen: ${what}`);
  }

  async picture(name, scheme, width) {
    const features = [{ name: "prefers-color-scheme", value: scheme }];
    await this.ask("Emulation.setEmulatedMedia", { features });
    await this.ask("Emulation.setDeviceMetricsOverride", { width, height: 900, deviceScaleFactor: 1, mobile: false });
    await pause(1200);
    const { data } = await this.ask("Page.captureScreenshot", { captureBeyondViewport: true });
    const file = join(pictures, `${name}.png`);
    writeFileSync(file, Buffer.from(data, "base64"));
    console.log(`  ${file}`);
  }

  /** What the page complained about, and what it asked anybody else for. */
  complaints(url) {
    return this.events.flatMap(({ method, params }) => {
      if (method === "Runtime.exceptionThrown") return [params.exceptionDetails.exception?.description ?? params.exceptionDetails.text];
      if (method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(params.type)) return [JSON.stringify(params.args)];
      if (method === "Log.entryAdded" && ["error", "warning"].includes(params.entry.level)) return [params.entry.text];
      const asked = method === "Network.requestWillBeSent" ? params.request.url : url;
      return asked.startsWith(url) || asked.startsWith("data:") ? [] : [`asked for ${asked}`];
    });
  }

  async close() {
    await this.ask("Browser.close", {}, undefined);
    await new Promise((ended) => this.process.once("exit", ended));
    rmSync(this.home, { recursive: true, force: true });
  }
}

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

/** Whether every canvas shows something. */
const DRAWN = `[...document.querySelectorAll("canvas")].every((canvas) => {
  const { width, height } = canvas;
  return width > 0 && canvas.getContext("2d").getImageData(0, 0, width, height).data.some((byte) => byte !== 0);
})`;

async function main() {
  mkdirSync(pictures, { recursive: true });
  const made = process.argv[2] ? null : await madeUp();
  const url = made?.url ?? process.argv[2];
  const browser = new Browser();
  const wrong = [];
  const expect = async (what, expression) => {
    if (!(await browser.value(expression))) wrong.push(what);
  };
  try {
    await browser.open(url);
    await browser.eventually("a frame", `document.querySelectorAll("#models section").length > 0`);
    await browser.eventually("something on every plot", `document.querySelectorAll("canvas").length > 2 && ${DRAWN}`);
    const recorded = url.startsWith("file:");
    if (!recorded) await expect("the page says that it is live", `document.getElementById("state").className === "live"`);
    const limits = `document.getElementById("models").textContent.includes("in engines, without the wait at routers")`;
    await expect("latency is named by its place", recorded ? limits : `!${limits}`);
    await expect("every variant has a row", `document.querySelectorAll("tbody tr").length > 0`);
    await expect("nothing is wider than the window", `document.documentElement.scrollWidth <= innerWidth`);
    if (made) {
      const odd = JSON.stringify(HOSTILE);
      await expect("odd names are shown as they are", `document.body.textContent.includes(${odd})`);
      await expect("odd names make no elements", `!document.querySelector("main img, main script") && !window.broken`);
      const before = await browser.value(`document.getElementById("clock").textContent`);
      await browser.eventually("time goes on", `document.getElementById("clock").textContent !== ${JSON.stringify(before)}`);
    }
    await browser.picture("light", "light", 1280);
    await browser.picture("dark", "dark", 1280);
    await browser.picture("narrow", "light", 420);
    await expect("a narrow window holds it", `document.documentElement.scrollWidth <= innerWidth`);
    if (made) {
      const box = await browser.value(`(({ x, y, width, height }) => ({ x: x + width / 2, y: y + height / 2 }))(document.querySelector("canvas").getBoundingClientRect())`);
      const latest = await browser.value(`document.querySelector(".legend b").textContent`);
      const point = () => browser.ask("Input.dispatchMouseEvent", { type: "mouseMoved", ...box });
      await browser.eventually("the value that is pointed at", `document.querySelector(".legend b").textContent !== ${JSON.stringify(latest)}`, point);
    }
    if (made) {
      // A narrow window ends above it.
      await browser.value(`document.querySelector("canvas.choice").scrollIntoView({ block: "center" })`);
      const plot = await browser.value(`(({ x, y, width, height }) => ({ x: x + width / 2, y: y + height / 2 }))(document.querySelector("canvas.choice").getBoundingClientRect())`);
      const click = async () => {
        for (const type of ["mousePressed", "mouseReleased"]) {
          await browser.ask("Input.dispatchMouseEvent", { type, button: "left", clickCount: 1, ...plot });
        }
      };
      await browser.eventually("the steps of a decision", `document.querySelectorAll(".decision li").length > 1`, click);
      await browser.picture("decision", "light", 420);
    }
    wrong.push(...browser.complaints(url));
    if (made) {
      made.close();
      await browser.eventually("the page says that the demo has ended", `document.getElementById("state").className === "lost"`);
    }
  } finally {
    await browser.close();
    made?.close();
  }
  for (const what of wrong) console.error(`  wrong: ${what}`);
  console.log(wrong.length === 0 ? "the page is fine" : "the page is not fine");
  process.exitCode = wrong.length === 0 ? 0 : 1;
}

await main();
