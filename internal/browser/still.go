package browser

// freezeJS runs in every document before its scripts: it ends finite motion and stops endless motion at its start.
const freezeJS = `
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

// waitDrawnJS waits until the page is drawn: fonts, images, immediate scripts (100 ms, requirement 002), and two
// frames.
const waitDrawnJS = `(async () => {
  await document.fonts.ready;
  const waits = [...document.images].filter(i => i.loading !== "lazy").map(i => i.decode());
  await Promise.allSettled(waits);
  await new Promise(r => setTimeout(r, 100));
})()`

// scrollJS scrolls to %d and waits until that is drawn without motion.
const scrollJS = `(async () => {
  window.scrollTo({left: 0, top: %d, behavior: "instant"});
  const frame = () => new Promise(r => requestAnimationFrame(r));
  await frame();
  for (const a of document.getAnimations()) {
    try { a.finish() } catch { a.cancel() } // endless ones cannot finish
  }
  await frame();
})()`
