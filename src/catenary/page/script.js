// Turns the still pictures into charts that answer the pointer. Without it the page is complete, only quieter.
(() => {
  "use strict";
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const heights = { overlay: [380, 300], end: [230, 230], ratio: [190, 190] };
  const options = {
    mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false,
    logLevel: 1, tooltip: { disableDefaultStyle: true },
  };

  // Columns back to the rows that a chart reads; a column that is no list is the same in every row.
  function rows(block) {
    const entries = Object.entries(block);
    const columns = entries.filter(([, column]) => Array.isArray(column));
    const constant = Object.fromEntries(entries.filter(([, column]) => !Array.isArray(column)));
    return columns[0][1].map((_, n) => {
      const row = { ...constant };
      for (const [name, column] of columns) if (column[n] !== null) row[name] = column[n];
      return row;
    });
  }
  for (const spec of Object.values(specs)) spec.datasets.drawn = spec.datasets.drawn.flatMap(rows);

  // A copy of a chart's JSON for the width of this window and the scale that is switched on.
  function fitted(spec, kind, state) {
    const copy = structuredClone(spec);
    copy.width = "container";
    const narrow = window.innerWidth < 640;
    copy.height = heights[kind][narrow ? 1 : 0];
    copy.autosize = { type: "fit-x", contains: "padding" };
    for (const layer of copy.layer) {
      const y = layer.encoding.y;
      if (kind !== "ratio" && state.scale === "linear") {
        y.scale = { type: "linear", zero: true };
        y.axis = { format: ".4~g", tickCount: 6 };
      }
      if (narrow) {
        y.title = null;
        if (layer.name === "line") layer.mark.strokeWidth = 1.5;
        if (layer.name === "tokens") layer.mark.strokeWidth = 0.5;
      }
    }
    for (const param of copy.params || []) {
      if (param.name === "logarithmic") param.value = state.scale === "log";
      if (param.name in state.switches) param.value = state.switches[param.name];
      if (param.name === "hidden") param.value = [...state.hidden];
    }
    return copy;
  }

  async function draw(figure, state) {
    const name = figure.dataset.chart;
    const live = figure.querySelector(".live");
    const still = figure.querySelector(".still");
    const kind = [...figure.classList].find((word) => word in heights);
    live.hidden = false;
    try {
      if (figure.view) figure.view.finalize();
      const result = await window.vegaEmbed(live, fitted(specs[name], kind, state), options);
      figure.view = result.view;
      still.hidden = true;
      figure.dataset.running = state.scale;
    } catch (problem) {
      live.hidden = true;
      still.hidden = false;
      throw problem;
    }
  }

  function press(button, on) {
    button.setAttribute("aria-pressed", String(on));
  }

  function start(group) {
    const state = { scale: "log", switches: { bands: true, tokens: true }, hidden: new Set() };
    const figures = [...group.querySelectorAll("figure[data-chart]")];
    const redraw = () => Promise.all(figures.map((figure) => draw(figure, state)));
    const send = (signal, value) => figures.forEach((figure) => figure.view && figure.view.signal(signal, value).run());

    const scales = [...group.querySelectorAll("[data-scale]")];
    scales.forEach((button) => button.addEventListener("click", () => {
      state.scale = button.dataset.scale;
      scales.forEach((other) => press(other, other === button));
      redraw();
    }));
    group.querySelectorAll("[data-switch]").forEach((button) => button.addEventListener("click", () => {
      const name = button.dataset.switch;
      state.switches[name] = !state.switches[name];
      press(button, state.switches[name]);
      send(name, state.switches[name]);
    }));
    group.querySelectorAll("[data-curve]").forEach((entry) => {
      const name = entry.querySelector(".name");
      const button = document.createElement("button");
      button.type = "button";
      button.append(...name.childNodes);
      name.append(button);
      press(button, true);
      button.addEventListener("click", () => {
        const curve = entry.dataset.curve;
        const shown = state.hidden.delete(curve);
        if (!shown) state.hidden.add(curve);
        press(button, shown);
        send("hidden", [...state.hidden]);
      });
    });
    group.querySelectorAll(".tools").forEach((tools) => { tools.hidden = false; });
    return redraw();
  }

  const grouped = [...document.querySelectorAll("[data-group]")].map(start);
  const alone = [...document.querySelectorAll("figure.ratio[data-chart]")].map((figure) => draw(figure, { scale: "log", switches: {}, hidden: [] }));
  Promise.all([...grouped, ...alone]).then(() => { document.documentElement.dataset.ready = "yes"; });
})();
