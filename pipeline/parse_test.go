package pipeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseReadsEverythingOfTheCorpusPipeline(t *testing.T) {
	d := parsed(t, read(t, "corpus-integration.yaml"))
	require.Equal(t, "corpus-integration", d.Name)
	require.Equal(t, "x.yaml", d.File)
	require.Len(t, d.Agents, 1)
	require.Equal(t, []string{"claude", "-p", "--model", "claude-opus-4-6", "--output-format", "json", "--max-turns",
		"1", "--no-session-persistence"}, d.Agents[0].Run)
	require.Equal(t, &Price{Input: 15, Output: 75}, d.Agents[0].Price)
	want := defaultLimits()
	want.Timeout = 10 * time.Minute
	want.Wait = Waits{First: time.Minute, Max: 5 * time.Minute}
	require.Equal(t, want, d.Limits)
	require.Equal(t, Budget{USD: 350, WarnAt: 0.8}, d.Budget)
	require.Equal(t, &Artifact{File: "artifact.html", Seed: "seed/page.html"}, d.Artifact)
	require.Equal(t, []Note{
		{Name: "conviction", File: "conviction-layer.md", Marker: "CONVICTION_ADDITION"},
		{Name: "discovery", File: "discovery-log.md", Marker: "DISCOVERY_LOG"},
	}, d.Notes)
	require.Equal(t, File{Label: "Content", Path: "_content.md"}, d.AlwaysRead[5])
	require.Len(t, d.Corpus, 7)
	require.Equal(t, "Grammar + Compositional Rules", d.Corpus[4].Theme)
	require.Len(t, d.Corpus[4].Files, 5)
}

func TestParseReadsRolesAndStages(t *testing.T) {
	d := parsed(t, read(t, "corpus-integration.yaml"))
	names := []string{}
	for _, r := range d.Roles {
		names = append(names, r.Name)
	}
	require.Equal(t, []string{"builder", "verifier", "auditor-A", "auditor-B", "auditor-C", "weaver", "refine"}, names)
	require.Equal(t, Check{Name: "container-width", Between: []int{940, 960}}, d.Roles[0].Checks[4])
	require.Equal(t, Check{Name: "no-html-artifact", None: []string{"<!DOCTYPE html>", "<html"}}, d.Roles[1].Checks[3])
	require.Equal(t, []Tally{{"deeplyIntegrated", "DEEPLY INTEGRATED"}, {"surfaceLevel", "SURFACE-LEVEL"},
		{"absent", "ABSENT"}}, d.Roles[1].Tally)
	require.Equal(t, []KeyText{{"focus", "Impression and emotion"}, {"questions", "PA-01, PA-03, PA-04, PA-05, PA-45"}},
		d.Roles[2].With)
	require.Equal(t, "last", d.Roles[5].Score.Take)
	require.Equal(t, []float64{0, 4}, d.Roles[5].Score.Range)

	require.Equal(t, []Order{{"A", "0", 0, 1, "Base ordering"}, {"B", "2/5", 2, 5, "Mid files promoted"},
		{"C", "4/5", 4, 5, "Last files promoted"}}, d.Stages[0].Orders)
	require.Equal(t, &Repeat{Max: 6, Until: "score >= 3.5", Stalled: 2}, d.Stages[1].Repeat)
	require.Equal(t, &Screenshots{
		Sizes: []Size{{1440, 900}, {768, 1024}}, Kinds: []string{"full", "viewport", "scroll"}, Attempts: 3,
		IfFailing: "continue",
	}, d.Stages[1].Steps[0].Screenshots)
	require.Equal(t, []string{"auditor-A", "auditor-B", "auditor-C"}, d.Stages[1].Steps[1].Together)
}

func TestParseReadsTheOtherPipelines(t *testing.T) {
	d := parsed(t, read(t, "plan-implement-review.yaml"))
	require.Equal(t, &Workspace{Git: "worktree", Dirty: "halt", Secrets: "skip"}, d.Workspace)
	require.Equal(t, "Is this the right plan?", d.Stages[0].Steps[1].Ask.Question)
	require.Equal(t, "ask", d.Stages[2].Repeat.Otherwise)

	d = parsed(t, read(t, "turn-loop.yaml"))
	require.Equal(t, &Workspace{Dir: ".", Secrets: "skip"}, d.Workspace)
	require.Equal(t, Step{Run: "go test ./...", ID: "tests"}, d.Stages[0].Steps[1])
}

// every part of the grammar that the three pipelines do not use
const rich = `
pipeline: rich
agent: {run: [scripted], env: [FAULTS]}
agents:
  other: {run: [other, --json], reply: text, price: {input: 1, output: 2.5}}
limits: &limits {timeout: 90s, structural: 4, time_scale: 0.01, backoff: {first: 1s, jitter: 0}, wait: {first: 2s}, fallback: [other]}
artifact: {file: page.html, seed: seed.html}
roles:
  &w writer: {prompt: w.md, gives: artifact, agent: other, limits: {timeout: 2h}, with: {n: 3, list: [a, 1]}}
  judge:
    prompt: j.md
    gives: report
    verdict: {find: '^VERDICT: (yes|no)$', approves: yes}
    score: {find: '(\d)/4', take: first, range: [-1, 4.5]}
corpus:
  S1: &set {theme: One, files: [a: a.md, b: b.md]}
  S2: {<<: *set, theme: Two}
stages:
  - name: write
    for_each: corpus
    orders: {A: {shift: 0}, X: {shift: 1/2, label: Back first}}
    passes:
      - {role: writer, order: X, limits: {attempts: 7}, id: draft}
    pause_after: true
  - name: judge
    steps:
      - screenshots: {sizes: [800x600], install: [npx, playwright, install]}
      - role: *w
      - {run: make, id: build, limits: {timeout: 5m}}
      - {role: judge, see: write}
`

func TestParseReadsTheRestOfTheGrammar(t *testing.T) {
	d := parsed(t, []byte(rich))
	require.Equal(t, []Agent{
		{Run: []string{"scripted"}, Reply: "claude-json", Env: []string{"FAULTS"}},
		{Name: "other", Run: []string{"other", "--json"}, Reply: "text", Price: &Price{Input: 1, Output: 2.5}},
	}, d.Agents)
	require.Equal(t, Limits{
		Timeout: 90 * time.Second, Attempts: 3, Structural: 4, TimeScale: 0.01,
		Backoff:  Backoff{First: time.Second, Factor: 2, Max: 2 * time.Minute},
		Wait:     Waits{First: 2 * time.Second},
		Fallback: []string{"other"},
	}, d.Limits)
	require.Equal(t, 2*time.Hour, d.Roles[0].Limits.Timeout)
	require.Equal(t, 4, d.Roles[0].Limits.Structural, "a role keeps what it does not override")
	require.Equal(t, []KeyText{{"n", "3"}, {"list", "a, 1"}}, d.Roles[0].With)
	require.Equal(t, &Score{Name: "score", Find: `(\d)/4`, Take: "first", Range: []float64{-1, 4.5}}, d.Roles[1].Score)
	require.Equal(t, Set{ID: "S2", Theme: "Two", Files: []File{{"a", "a.md"}, {"b", "b.md"}}}, d.Corpus[1])
	require.Equal(t, []Order{{"A", "0", 0, 1, "Base ordering"}, {"X", "1/2", 1, 2, "Back first"}}, d.Stages[0].Orders)
	require.True(t, d.Stages[0].PauseAfter)
	require.Equal(t, 7, d.Stages[0].Steps[0].Limits.Attempts)
	require.Equal(t, 2*time.Hour, d.Stages[0].Steps[0].Limits.Timeout, "a step's limits are laid over its role's")
	require.Equal(t, "writer", d.Stages[1].Steps[1].Role, "an alias")
	require.Equal(t, []string{"npx", "playwright", "install"}, d.Stages[1].Steps[0].Screenshots.Install)
	require.Equal(t, []string{"full", "viewport", "scroll"}, d.Stages[1].Steps[0].Screenshots.Kinds)
}

func TestParseKnowsWhatATemplatePlaces(t *testing.T) {
	src := read(t, "turn-loop.yaml")
	folder := folderFor(src)
	folder["prompts/turn.md"].Data = []byte("Continue.\n{{replies}}\n\n{{content}} {{n}}\n")
	d, problems := Parse("x.yaml", src, folder)
	require.Empty(t, problems)
	require.Equal(t, []string{PartReplies, PartContent}, d.Roles[0].Places)
}
