package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/agent"
)

var (
	claudeRun  = &shared{make: makeClaude}
	wrapperRun = &shared{make: makeWrapper}
)

// plays are the passes of the run with the fake claude, in their order.
var plays = []string{"nine 9216", "seventy 71680", "mega 1048576", "error", "unfinished", "broken", "silent", "look",
	"cached", "costless", "bare"}

// numberOf returns the number of the pass with a play.
func numberOf(t *testing.T, name string) int {
	t.Helper()
	for i, p := range plays {
		if p == name || strings.HasPrefix(p, name+" ") {
			return i + 1
		}
	}
	require.FailNow(t, "no play "+name)
	return 0
}

// makeClaude calls the fake claude in a pipeline without artifact and notes.
func makeClaude(t *testing.T) result {
	setRowsFaults(t, "[]")
	folder := filepath.Join(base, "asked-pipeline")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	var roles, steps strings.Builder
	for _, p := range plays {
		name, _, _ := strings.Cut(p, " ")
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".md"), []byte("PLAY: "+p+"\n"), 0o600))
		fmt.Fprintf(&roles, "  %s: {prompt: %s.md, gives: report}\n", name, name)
		fmt.Fprintf(&steps, "      - role: %s\n", name)
	}
	config := filepath.Join(folder, "asked.yaml")
	require.NoError(t, os.WriteFile(config, []byte(`pipeline: asked
wording: corpus
agent: {run: [claude, -p, --output-format, json], reply: claude-json, price: {input: 15, output: 75}, env: [FAKE_CLAUDE_DIR]}
limits: {time_scale: 0.001}
roles:
`+roles.String()+`stages:
  - name: ask
    checkpoint: cp-asked
    steps:
`+steps.String()), 0o600))
	r := result{dir: filepath.Join(base, "asked")}
	r.output = starter(t, "run", "--config", config, "--output-dir", r.dir)
	return r
}

func claudeCalls(t *testing.T) []object {
	t.Helper()
	return lines(t, read(t, filepath.Join(rowsEnv.fakeDir(), "calls.jsonl")))
}

// makeWrapper revises a page by plain programs, each of which returns it in another form.
func makeWrapper(t *testing.T) result {
	setRowsFaults(t, "[]")
	folder := filepath.Join(base, "wrapped-pipeline")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	for name, text := range map[string]string{
		"seed.html": pageOf("seed"), "task.md": "Change the page.\n",
		"trap.md": "A file may say {{conviction}}, {{artifact}} and {{n}}; nothing happens to it.\n",
		"wrapped.yaml": `pipeline: wrapped
wording: corpus
agents:
  fence: {run: [printf, ` + quoted("Here it is:\n\n```html\n%s```\nDone.\n") + ", " + quoted(pageOf("fence")) +
			`], reply: text}
  doctype: {run: [printf, ` + quoted("I have thought about it.\n%sThat was all.\n") + ", " + quoted(pageOf("doctype")) +
			`], reply: text}
  html: {run: [printf, "Well: %s", ` + quoted(strings.TrimPrefix(pageOf("html"), doctype)) + `], reply: text}
  writer: {run: [sh, -c, "sed -i s/html-was-here/writer-was-here/ page.html; echo I changed the file."], reply: text}
artifact: {file: page.html, seed: seed.html}
roles:
  fence: {prompt: task.md, gives: artifact, agent: fence}
  doctype: {prompt: task.md, gives: artifact, agent: doctype}
  html: {prompt: task.md, gives: artifact, agent: html}
  writer: {prompt: task.md, gives: artifact, agent: writer}
corpus: {S1: {theme: Traps, files: [Trap: trap.md]}}
stages:
  - name: wrap
    for_each: corpus
    passes: [{role: fence}, {role: doctype}, {role: html}, {role: writer}]
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	r := result{dir: filepath.Join(base, "wrapped")}
	r.output = starter(t, "run", "--config", filepath.Join(folder, "wrapped.yaml"), "--output-dir", r.dir)
	return r
}

const doctype = "<!DOCTYPE html>\n"

// quoted returns a text as a YAML string.
func quoted(text string) string {
	raw, _ := json.Marshal(text)
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(raw))
}

func pageOf(who string) string {
	return doctype + "<html><head><title>x</title></head><body>" + who + "-was-here</body></html>\n"
}

// agentRows are calls of programs and their replies.
func agentRows() rows {
	return rows{
		"PX-06 PX-07": func(t *testing.T) {
			r := wrapperRun.get(t)
			require.Contains(t, r.prompt(t, 1),
				`A file may say {{conviction}}, {{artifact}} and {{n}}; nothing happens to it.`)
			for n, want := range []string{pageOf("fence"), pageOf("doctype"), strings.TrimPrefix(pageOf("html"), doctype),
				strings.TrimPrefix(pageOf("writer"), doctype)} {
				require.Equal(t, digest([]byte(want)), r.record(t, n+1).text(t, "artifactHash"), "pass %d:\n%s", n+1,
					r.file(t, passDir(n+1)+"raw-output.txt"))
			}
			// The last agent left the page in its working copy.
			require.Equal(t, strings.TrimPrefix(pageOf("writer"), doctype), string(r.file(t, "page.html")))
			tokens := r.record(t, 1).in(t, "tokens")
			require.Equal(t, true, tokens["estimated"], "a program that prints text reports no cost")
			require.Positive(t, tokens.number(t, "inputTokens"))
			require.Zero(t, tokens.number(t, "estimatedCostUsd"), "without a price")
		},
		"PX-08": func(t *testing.T) {
			r := claudeRun.get(t)
			for name, size := range map[string]int{"nine": 9 << 10, "seventy": 70 << 10, "mega": 1 << 20} {
				got := r.file(t, passDir(numberOf(t, name))+"raw-output.txt")
				require.Equal(t, digest([]byte(long(size))), digest(got), "%s: %d bytes", name, len(got))
			}
		},
		"PX-09 PX-10 AR-03": func(t *testing.T) {
			failedOnce(t, "error", "claude-p-exit-nonzero", "the model is confused")
			failedOnce(t, "unfinished", "output-empty", "error_max_turns")
			failedOnce(t, "broken", "output-truncated", "This ends in the mid")
			failedOnce(t, "silent", "output-empty", "")
		},
		"PX-11": func(t *testing.T) {
			claudeRun.get(t)
			for _, call := range claudeCalls(t) {
				env := call.list(t, "env")
				require.Contains(t, env, "FAKE_CLAUDE_DIR="+rowsEnv.fakeDir(), "named in the definition")
				for _, v := range env {
					if !strings.HasPrefix(fmt.Sprint(v), agent.MarkEnv+"=") {
						require.NotRegexp(t, `^(CLAUDECODE|CLAUDE_CODE_ENTRYPOINT|SECRET_OF_THE_WORKER|PASSBOOK_.*)=`,
							v)
					}
				}
			}
		},
		"PX-12": func(t *testing.T) {
			r := claudeRun.get(t)
			for _, call := range claudeCalls(t) {
				require.NotContains(t, call.text(t, "cwd"), r.dir)
				require.NoDirExists(t, call.text(t, "cwd"), "removed after the call")
			}
			require.EqualValues(t, 3, r.state(t).number(t, "schemaVersion"))
			require.NoFileExists(t, r.path("artifact.html"))
			require.NoFileExists(t, filepath.Join(project, "artifact.html"))
		},
		"CO-08": func(t *testing.T) {
			r := claudeRun.get(t)
			tokens := r.record(t, numberOf(t, "cached")).in(t, "tokens")
			require.EqualValues(t, 863, tokens.number(t, "inputTokens"))
			require.EqualValues(t, 42656, tokens.number(t, "outputTokens"))
			require.EqualValues(t, 12000, tokens.number(t, "cacheReadTokens"))
			require.EqualValues(t, 345, tokens.number(t, "cacheWriteTokens"))
			require.InDelta(t, 3.42794175, tokens.number(t, "estimatedCostUsd"), 1e-6)
			row := where(r.log(t, "cost.jsonl"), "pass", float64(numberOf(t, "cached")))[0]
			require.EqualValues(t, 12000, row.number(t, "cacheRead"))
			require.EqualValues(t, 345, row.number(t, "cacheWrite"))
			require.Equal(t, "claude-large", row.text(t, "model"), "the model that did most")
			require.EqualValues(t, 12000+10000, r.state(t).number(t, "cost.totalCacheReadTokens"))
		},
		"CO-09": func(t *testing.T) {
			r := claudeRun.get(t)
			costless := r.record(t, numberOf(t, "costless")).in(t, "tokens")
			require.InDelta(t, (1000+0.1*10000+1.25*4000)*15e-6+200*75e-6, costless.number(t, "estimatedCostUsd"), 1e-6)
			bare := r.record(t, numberOf(t, "bare")).in(t, "tokens")
			require.EqualValues(t, quarter(r.prompt(t, numberOf(t, "bare"))), bare.number(t, "inputTokens"))
			require.EqualValues(t, quarter(string(r.file(t, passDir(numberOf(t, "bare"))+"raw-output.txt"))),
				bare.number(t, "outputTokens"))
			for _, name := range []string{"nine", "look", "cached", "costless", "bare"} {
				row := where(r.log(t, "cost.jsonl"), "pass", float64(numberOf(t, name)))[0]
				require.Equal(t, name == "costless" || name == "bare", row["estimated"] == true, name)
			}
			require.Equal(t, true, costless["estimated"])
			require.Equal(t, true, bare["estimated"])
			require.Contains(t, starter(t, "cost-report", r.dir), "estimated)")
		},
	}
}

// failedOnce requires a pass whose first attempt failed, with its output kept, and whose second one succeeded.
func failedOnce(t *testing.T, play, category, text string) {
	t.Helper()
	r, n := claudeRun.get(t), numberOf(t, play)
	require.EqualValues(t, 1, r.record(t, n).number(t, "retryCount"), play)
	found := where(r.log(t, "errors.jsonl"), "context", "pass-"+strconv.Itoa(n))
	require.Len(t, found, 1, play)
	require.Equal(t, category, found[0].text(t, "category"), play)
	require.Equal(t, true, found[0]["recovered"], play)
	require.Contains(t, string(r.file(t, passDir(n)+"raw-output-FAILED.txt")), text, play)
	require.Equal(t, "This is the answer of "+play+".", string(r.file(t, passDir(n)+"raw-output.txt")))
}
