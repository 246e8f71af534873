package workflows_test

const head = `
pipeline: small
agent: {run: [scripted], reply: claude-json}
limits: {timeout: 10m, attempts: 3, structural: 2, backoff: {first: 5s, factor: 2, max: 2m, jitter: 0.2}}
artifact: {file: page.html, seed: seed.html}
roles:
  builder: {prompt: prompt.md, gives: artifact}
  reader: {prompt: prompt.md, gives: report}
  critic-A: {prompt: prompt.md, gives: report}
  critic-B: {prompt: prompt.md, gives: report}
  critic-C: {prompt: prompt.md, gives: report}
  judge: {prompt: prompt.md, gives: report, score: {name: score, find: 'Score: ([0-4])', take: last, range: [0, 4]}}
`

// twoPasses are two numbered passes.
const twoPasses = head + `
stages:
  - name: build
    checkpoint: cp-built
    steps: [{role: builder}, {role: builder}]
`

// aGroup is three critics at the same time, and somebody who reads them.
const aGroup = head + `
stages:
  - name: look
    steps: [{together: [critic-A, critic-B, critic-C]}, {role: reader, see: last}]
`

// aLoop builds once and polishes until the judge is content.
const aLoop = head + `
stages:
  - name: build
    steps: [{role: builder}]
  - name: polish
    repeat: {max: 3, until: score >= 3}
    checkpoint: cp-{n}
    dir: cycle-{n}
    steps:
      - screenshots: {sizes: [800x600], kinds: [full], attempts: 3, if_failing: continue}
      - together: [critic-A, critic-B]
      - role: judge
      - role: builder
`
