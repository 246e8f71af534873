package e2e_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/proto"

	"github.com/passbook-run/passbook/run"
)

// planted are the secrets of the test's run, by where each is planted. They are put together here, so that no scanner
// takes this file for a leak.
var planted = map[string]string{
	"prompt file": "ghp_" + strings.Repeat("pR0m", 9),
	"artifact":    "sk-" + "ant-api03-" + strings.Repeat("aRt1", 10),
	"reply":       "sk-" + "proj-" + strings.Repeat("rEp1", 10),
	"note":        "glpat-" + strings.Repeat("n0Te", 6),
	"stderr":      "npm_" + strings.Repeat("sTd3", 9),
	"error":       "AIza" + strings.Repeat("eRr0r", 7),
	"variable":    "correct horse battery staple",
	"feedback":    "AKIA" + "FEEDBACK12345678",
	"task":        "sk_" + "live_" + strings.Repeat("tAsK", 6),
	"command":     "-----BEGIN " + "PRIVATE KEY-----\nMIIEcommand/+=\n-----END " + "PRIVATE KEY-----",
	"pattern":     "badge 4711-4712",
	"note word":   "xoxb-" + "123456789012-" + strings.Repeat("w0rD", 6),
}

// leaky is an agent that spills all that it knows. The first time it fails.
const leaky = `cat > "$PROMPTS/$$"
echo "stderr: STDERR" >&2
if [ ! -e "$PROMPTS/failed" ]; then touch "$PROMPTS/failed"; echo "cannot reach the model with ERROR" >&2; exit 3; fi
echo "The variable is $DEPLOY_TOKEN,"
cat <<'EOF'
and REPLY is in words; PATTERN.

<!-- FOUND_START -->
noted: NOTE
<!-- FOUND_END -->

` + "```html" + `
<!DOCTYPE html>
<html><body>ARTIFACT is part of the page</body></html>
` + "```" + `
EOF
`

const leakyPipeline = `pipeline: leaky
agent: {run: [sh, AGENT], reply: text, env: [PROMPTS, DEPLOY_TOKEN]}
limits: {attempts: 3, backoff: {first: 1s, factor: 1, max: 1s}, time_scale: 0.01}
artifact: {file: page.html, seed: seed.html}
notes: {found: {file: found.md, marker: FOUND}}
roles:
  builder: {prompt: build.md, gives: artifact, notes: [found]}
  reader: {prompt: read.md, gives: report}
stages:
  - name: build
    steps:
      - role: builder
      - ask: Is it right?
      - role: reader
      - run: cat "$HOME/private.pem"; exit 1
        if_failing: ask
`

// TestSecretsAreNotWrittenDown runs a pipeline whose every channel holds a secret, and looks for them in all that was
// written.
func TestSecretsAreNotWrittenDown(t *testing.T) {
	t.Parallel()
	prompts := t.TempDir()
	h := newEnv(t, "PROMPTS="+prompts, "DEPLOY_TOKEN="+planted["variable"],
		"PASSBOOK_REDACT_PATTERNS=badge (\\d+-\\d+)")
	h.env = append(h.env, "HOME="+h.root, "GOCACHE="+os.Getenv("GOCACHE"), "XDG_CACHE_HOME="+cacheHome(t))
	dir := h.dir("run")
	file := h.leaky()
	output := h.starter("run", "--config", file, "--output-dir", dir, "--task", "Deploy with "+planted["task"],
		"--detach")
	require.Contains(t, output, "build.md contains what looks like a secret (github-token)")
	h.asked(dir, 1)
	h.starter("decide", dir, "--action", "retry_feedback", "--feedback", "use "+planted["feedback"], "--note",
		planted["note word"])
	h.asked(dir, 2)
	h.starter("decide", dir, "--action", "continue")
	until(t, "the gate asks", func() bool { return statusIs(dir, run.AwaitingGateDecision) })
	history := h.historyOf(metaOf(t, dir).RunID)
	h.starter("decide", dir, "--action", "continue_with_waiver", "--feedback", planted["feedback"])
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	h.valid(dir)

	page := read(t, filepath.Join(dir, "page.html"))
	require.Contains(t, string(page), planted["artifact"]+" is part of the page", "the artifact is the user's data")
	promptFile := read(t, filepath.Join(filepath.Dir(file), "build.md"))
	theirs := map[string][]byte{"artifact": page, "prompt file": promptFile}
	places := append(contents(t, dir), contents(t, h.state())...)
	for where, raw := range history {
		places = append(places, place{"history " + where, raw})
	}
	leaks := map[string][]string{}
	for channel, secret := range planted {
		if channel == "pattern" {
			secret = "4711-4712"
		}
		for _, p := range places {
			if bytes.Equal(p.raw, theirs[channel]) {
				continue // the very file, and nothing about it
			}
			for _, form := range []string{secret, strings.ReplaceAll(secret, "\n", `\n`)} {
				if bytes.Contains(p.raw, []byte(form)) {
					leaks[channel] = append(leaks[channel], p.name)
				}
			}
		}
	}
	require.Empty(t, leaks)
}

// leaky lays the pipeline out, beside the run and not in it.
func (h *environment) leaky() string {
	h.t.Helper()
	folder := h.t.TempDir()
	var words []string
	for channel, secret := range planted {
		words = append(words, strings.ToUpper(channel), secret)
	}
	fill := strings.NewReplacer(words...)
	require.NoError(h.t, os.WriteFile(filepath.Join(h.root, "private.pem"), []byte(planted["command"]), 0o600))
	for name, text := range map[string]string{
		"agent.sh": fill.Replace(leaky), "build.md": "Build it with " + planted["prompt file"] + ": {{task}}\n",
		"read.md": "Read it.\n", "seed.html": "<!DOCTYPE html>\n<html></html>\n",
		"pipeline.yaml": strings.Replace(leakyPipeline, "AGENT", filepath.Join(folder, "agent.sh"), 1),
	} {
		require.NoError(h.t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return filepath.Join(folder, "pipeline.yaml")
}

// cacheHome keeps the built server where it is, although the environment has a separate home directory.
func cacheHome(t *testing.T) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	require.NoError(t, err)
	return dir
}

// place is something that was written.
type place struct {
	name string
	raw  []byte
}

// contents reads every file below a folder.
func contents(t *testing.T, root string) []place {
	t.Helper()
	var out []place
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			raw, err := os.ReadFile(path)
			out = append(out, place{path, raw})
			return err
		}
		return err
	}))
	require.NotEmpty(t, out)
	return out
}

// historyOf returns the events of a run's history as the server keeps them.
func (h *environment) historyOf(id string) map[string][]byte {
	h.t.Helper()
	all := map[string][]byte{}
	it := h.dial().GetWorkflowHistory(h.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		ev, err := it.Next()
		require.NoError(h.t, err)
		raw, err := proto.Marshal(ev)
		require.NoError(h.t, err)
		all[ev.EventType.String()] = append(all[ev.EventType.String()], raw...)
	}
	require.NotEmpty(h.t, all)
	return all
}
