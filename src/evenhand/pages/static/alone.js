// A page that stands alone: finds arms, and opens the reasons that a link leads to.
"use strict";
for (const box of document.querySelectorAll("[data-search]")) {
  const rows = [...document.querySelectorAll(box.dataset.search)];
  const names = rows.map((row) => (row.querySelector("th, summary") || row).textContent.toLowerCase());
  const input = box.querySelector("input"), said = box.querySelector("output");
  box.hidden = false;
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    let n = 0;
    rows.forEach((row, i) => {
      row.hidden = !names[i].includes(wanted);
      if (!row.hidden && row.matches("tr")) n += 1;
    });
    said.textContent = wanted ? n + " found" : "";
  });
}
function reveal() {
  const one = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (one && one.matches("details")) { one.open = true; one.scrollIntoView(); }
}
addEventListener("hashchange", reveal);
reveal();
