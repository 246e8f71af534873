// Keeps the pages of the console up to date. Without it they show the state when they were loaded.
"use strict";

(() => {
  const main = document.querySelector("main");
  if (!main) return;
  document.documentElement.classList.add("scripts");

  // A list that is folded on a phone is open beside the question on a wide screen.
  const wide = matchMedia("(min-width: 821px)");
  const unfold = () => document.querySelectorAll("details[data-wide]").forEach((d) => { d.open = wide.matches; });
  unfold();
  wide.addEventListener("change", unfold);

  // The tabs of a run are wider than a phone.
  const tab = document.querySelector(".tabs [aria-current]");
  if (tab) tab.scrollIntoView({ block: "nearest", inline: "center" });

  // A form is sent once.
  document.addEventListener("submit", (e) => {
    if (e.target.method !== "post") return;
    if (e.target.dataset.sent) { e.preventDefault(); return; }
    e.target.dataset.sent = "true";
    e.target.querySelectorAll("button").forEach((b) => b.setAttribute("aria-busy", "true"));
  });
  addEventListener("pageshow", () => document.querySelectorAll("form").forEach((f) => {
    delete f.dataset.sent;
    f.querySelectorAll("button").forEach((b) => b.removeAttribute("aria-busy"));
  }));

  // Says above the page why it is not up to date; an empty text: it is.
  const connection = document.getElementById("connection");
  const say = (text) => {
    if (connection.textContent !== text) connection.textContent = text;
    connection.hidden = !text;
  };
  const away = "The console does not answer. This page shows the last state, and continues when the console is back.";
  const unread = "The directory of this run can no longer be read. The page shows its last state.";
  const failed = (status) => say(status === 401 ? "You are logged out. This page shows the last state. Log in, and reload it."
    : status === 404 ? "This run no longer exists here. This page shows its last state."
      : "This page cannot be updated (error " + status + "). It shows the last state.");

  // Finds the element again that has the focus, after its part was replaced.
  const nameOf = (e) => e.id || e.getAttribute("href") || e.getAttribute("aria-label") || e.textContent;
  const replace = (part, html) => {
    const focus = part.contains(document.activeElement) && document.activeElement !== document.body ? document.activeElement : null;
    const name = focus && nameOf(focus), kind = focus && focus.tagName;
    const unfolded = new Map([...part.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));
    const scrolled = new Map([...part.querySelectorAll("[tabindex]")].map((e) => [nameOf(e), e.scrollTop]));
    part.innerHTML = html;
    for (const [id, state] of unfolded) {
      const d = document.getElementById(id);
      if (d) d.open = state;
    }
    for (const e of part.querySelectorAll("[tabindex]")) {
      const top = scrolled.get(nameOf(e));
      if (top) e.scrollTop = top;
    }
    if (!focus) return;
    const same = [...part.querySelectorAll(kind)].find((e) => nameOf(e) === name);
    if (same) { same.focus({ preventScroll: true }); return; }
    part.tabIndex = -1;
    part.focus({ preventScroll: true });
  };
  // What a user has marked to copy it is not replaced.
  const marked = (part) => {
    const s = getSelection();
    return !!s && !s.isCollapsed && part.contains(s.anchorNode);
  };

  const form = document.querySelector("form.answer");
  const fieldOf = (of, name) => { const e = of.querySelector(`input[name=${name}]`); return e ? e.value : ""; };
  const asks = (of) => fieldOf(of, "question") + " " + fieldOf(of, "digest");

  // Replaces the parts of this page that have changed. What a user has unfolded stays so.
  let loading = false;
  const load = async () => {
    if (loading || document.hidden) return;
    loading = true;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", headers: { Accept: "text/html" } });
      if (!answer.ok) { failed(answer.status); return; }
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (main.dataset.live && !next.querySelector("main[data-live]")) { say(unread); return; }
      say("");
      const count = document.querySelector(".places"), counted = next.querySelector(".places");
      if (counted && count.innerHTML !== counted.innerHTML) replace(count, counted.innerHTML);
      document.title = next.title;
      for (const part of document.querySelectorAll("[data-part]")) {
        const now = next.getElementById(part.id);
        if (!now || now.innerHTML === part.innerHTML && now.className === part.className || marked(part)) continue;
        part.className = now.className;
        replace(part, now.innerHTML);
      }
      // The inbox is empty until a question comes. A text that is being entered stays.
      const asked = next.querySelector("form.answer");
      if (main.dataset.follow && !form && asked) location.reload();
      if (main.dataset.follow && form) {
        const answered = document.getElementById("answered");
        answered.hidden = !!asked && asks(asked) === asks(form);
        answered.textContent = answered.hidden ? "" : "This question was answered, or its work has changed. Reload the page to see what is open now.";
      }
    } catch { say(away); } finally {
      loading = false;
    }
  };

  if (main.dataset.live) {
    const now = document.getElementById("now");
    let timer = 0, stream = null;
    const follow = () => {
      if (stream || document.hidden) return;
      stream = new EventSource(main.dataset.live);
      stream.addEventListener("open", () => say(""));
      stream.addEventListener("now", (e) => { if (!marked(now)) replace(now, e.data); });
      stream.addEventListener("gone", (e) => say(e.data));
      stream.addEventListener("out", () => { leave(); failed(401); });
      stream.addEventListener("changed", () => { clearTimeout(timer); timer = setTimeout(load, 300); });
      stream.addEventListener("error", () => {
        if (stream && stream.readyState === EventSource.CLOSED) { // the answer was not a stream: the page says why
          leave();
          load();
          setTimeout(follow, 5000);
        } else {
          say(away); // the browser tries again
        }
      });
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
