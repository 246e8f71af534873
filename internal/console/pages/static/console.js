// Keeps the pages of the console up to date. Without it they show the state when they were loaded.
"use strict";

(() => {
  const main = document.querySelector("main");
  if (!main) return;

  // A list that is folded on a phone is open beside the question on a wide screen.
  const wide = matchMedia("(min-width: 821px)");
  const unfold = () => document.querySelectorAll("details[data-wide]").forEach((d) => { d.open = wide.matches; });
  unfold();
  wide.addEventListener("change", unfold);

  // A form is sent once.
  document.addEventListener("submit", (e) => {
    if (e.target.method !== "post") return;
    if (e.target.dataset.sent) { e.preventDefault(); return; }
    e.target.dataset.sent = "true";
    e.target.querySelectorAll("button").forEach((b) => b.setAttribute("aria-busy", "true"));
  });
  addEventListener("pageshow", () => document.querySelectorAll("form").forEach((f) => delete f.dataset.sent));

  const open = (part) => new Map([...part.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));

  // Replaces the parts of this page that have changed. What a user has unfolded stays so.
  let loading = false;
  const load = async () => {
    if (loading || document.hidden) return;
    loading = true;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", headers: { Accept: "text/html" } });
      if (!answer.ok) return;
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      const count = document.querySelector(".places"), counted = next.querySelector(".places");
      if (counted && count.innerHTML !== counted.innerHTML) count.innerHTML = counted.innerHTML;
      document.title = next.title;
      for (const part of document.querySelectorAll("[data-part]")) {
        const now = next.getElementById(part.id);
        if (!now || now.innerHTML === part.innerHTML && now.className === part.className) continue;
        if (part.contains(document.activeElement) && document.activeElement !== document.body) continue;
        const unfolded = open(part);
        part.className = now.className;
        part.innerHTML = now.innerHTML;
        for (const [id, state] of unfolded) {
          const d = document.getElementById(id);
          if (d) d.open = state;
        }
      }
      // The inbox is empty until a question comes, and shows the next one if its question was answered elsewhere.
      if (main.dataset.follow && !document.querySelector("form.answer") && next.querySelector("form.answer")) location.reload();
    } catch { /* the server restarts; the next attempt loads it */ } finally {
      loading = false;
    }
  };

  if (main.dataset.live) {
    const now = document.getElementById("now");
    let timer = 0, stream = null;
    const follow = () => {
      if (stream || document.hidden) return;
      stream = new EventSource(main.dataset.live);
      stream.addEventListener("now", (e) => {
        now.innerHTML = e.data;
      });
      stream.addEventListener("changed", () => { clearTimeout(timer); timer = setTimeout(load, 300); });
    };
    const leave = () => { if (stream) stream.close(); stream = null; };
    // A browser has few connections to one server: a hidden page gives its own back.
    document.addEventListener("visibilitychange", () => { if (document.hidden) { leave(); } else { load(); follow(); } });
    addEventListener("pagehide", leave);
    follow();
  } else if (main.dataset.follow !== undefined) {
    setInterval(load, 4000);
    document.addEventListener("visibilitychange", load);
  }
})();
