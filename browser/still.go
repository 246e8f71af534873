package browser

// stillJS runs in every document before its own scripts: finite motion is at
// its end at once, endless motion at its beginning.
const stillJS = `
const still = new CSSStyleSheet();
still.replaceSync(` + "`" + `*, *::before, *::after, ::backdrop {
  animation-duration: 0s !important;
  animation-delay: 0s !important;
  animation-iteration-count: 1 !important;
  transition-duration: 0s !important;
  transition-delay: 0s !important;
  scroll-behavior: auto !important;
  caret-color: transparent !important;
}` + "`" + `);
document.adoptedStyleSheets = [...document.adoptedStyleSheets, still];
`

// settleJS waits until the page is drawn: its fonts, its pictures, what its
// scripts do at once (100 ms, requirement 002), and two frames.
const settleJS = `(async () => {
  await document.fonts.ready;
  const waits = [...document.images].filter(i => i.loading !== "lazy").map(i => i.decode());
  await Promise.allSettled(waits);
  await new Promise(r => setTimeout(r, 100));
})()`

// frameJS scrolls to %d and waits until that is drawn, with nothing moving.
const frameJS = `(async () => {
  window.scrollTo({left: 0, top: %d, behavior: "instant"});
  const frame = () => new Promise(r => requestAnimationFrame(r));
  await frame();
  for (const a of document.getAnimations()) {
    try { a.finish() } catch { a.cancel() } // endless ones cannot finish
  }
  await frame();
})()`
