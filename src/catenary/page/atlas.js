// Sorts the table by the column whose heading is pressed. Without it the table stands in the order of the names.
(() => {
  "use strict";
  const table = document.getElementById("models");
  const body = table.tBodies[0];

  function compare(a, b, kind) {
    if (kind === "text") return a.localeCompare(b);
    const [x, y] = [Number(a), Number(b)];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
    return x - y;
  }

  for (const button of table.querySelectorAll("button[data-sort]")) {
    button.addEventListener("click", () => {
      const heading = button.parentElement;
      const upwards = heading.getAttribute("aria-sort") !== "ascending";
      for (const other of heading.parentElement.children) other.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", upwards ? "ascending" : "descending");
      const column = heading.cellIndex;
      const rows = [...body.rows].map((row) => [row.cells[column].dataset.key, row]);
      rows.sort((a, b) => (upwards ? 1 : -1) * compare(a[0], b[0], button.dataset.sort));
      body.append(...rows.map(([, row]) => row));
    });
  }
  document.documentElement.dataset.ready = "";
})();
