// Pages work without this. It keeps them up to date, shows values under the pointer, and logs in
// with a key that stands behind the # of a link.
"use strict";

function inWords(x, unit) {
  if (x === null) return "\u2013";
  const y = unit === "percent" ? 100 * x : x;
  return Number(y.toPrecision(3)).toLocaleString("en") + (unit === "percent" ? "\u00a0%" : "");
}

// ---- charts: the values nearest to the pointer ----
function watch(figure) {
  const svg = figure.querySelector(".plot > svg");
  const holder = figure.querySelector("script[type='application/json']");
  const readout = figure.querySelector(".readout");
  if (!svg || !holder || !readout) return;
  const data = JSON.parse(holder.textContent);
  const pointer = document.createElementNS("http://www.w3.org/2000/svg", "line");
  pointer.setAttribute("class", "pointer");
  pointer.setAttribute("y1", 0);
  pointer.setAttribute("y2", 200);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width;
    let best = 0;
    data.places.forEach((place, i) => {
      if (Math.abs(place - x) < Math.abs(data.places[best] - x)) best = i;
    });
    if (!data.places.length) return;
    const at = 100 * data.places[best] + "%";
    pointer.setAttribute("x1", at);
    pointer.setAttribute("x2", at);
    svg.append(pointer);
    const words = data.names.map((name, i) => name + " " + inWords(data.values[i][best], data.unit));
    readout.textContent = data.times[best] + ": " + words.join(" · ");
  });
  svg.addEventListener("pointerleave", () => {
    pointer.remove();
    readout.textContent = "";
  });
}
document.querySelectorAll("figure").forEach(watch);

// ---- live: parts of the page that are fetched again ----
const live = document.querySelector("[data-live-every]");
if (live) {
  const box = live.querySelector("input");
  const said = live.querySelector("output");
  let fresh = Date.now();
  live.hidden = false;
  async function again() {
    if (document.hidden || !box.checked) return;
    let text;
    try {
      const answer = await fetch(location.href, { headers: { "X-Live": "1" } });
      if (answer.redirected) return location.reload(); // logged out
      if (!answer.ok) return;
      text = await answer.text();
    } catch (error) {
      return;
    }
    const page = new DOMParser().parseFromString(text, "text/html");
    document.querySelectorAll("[data-live]").forEach((old) => {
      const part = page.getElementById(old.id);
      if (!part || part.innerHTML === old.dataset.was) return;
      const focus = old.contains(document.activeElement) ? document.activeElement.id : "";
      if (old.contains(document.activeElement) && !focus) return; // not under the reader's hands
      const open = [...old.querySelectorAll("details[open][id]")].map((one) => one.id);
      old.dataset.was = part.innerHTML;
      old.replaceChildren(...part.childNodes);
      open.forEach((id) => { const one = document.getElementById(id); if (one) one.open = true; });
      if (focus && document.getElementById(focus)) document.getElementById(focus).focus();
      old.querySelectorAll("figure").forEach(watch);
      if (old.matches("figure")) watch(old);
    });
    fresh = Date.now();
  }
  setInterval(again, 1000 * Number(live.dataset.liveEvery));
  setInterval(() => {
    const seconds = Math.round((Date.now() - fresh) / 1000);
    said.textContent = box.checked ? "updated " + seconds + " s ago" : "paused";
  }, 1000);
}

// ---- /login#key=...: what is behind the # is not sent to any server ----
const login = document.querySelector("form.login");
if (login && location.hash.startsWith("#key=")) {
  login.querySelector("input[name=key]").value = decodeURIComponent(location.hash.slice(5));
  history.replaceState(null, "", location.pathname + location.search);
  login.submit();
}
