package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// foreignWords are those of requirement 002's pipeline. No other pipeline is reported in them.
var foreignWords = regexp.MustCompile(`(?i)corpus|\bPA\b|pa-score|pa-cycle|DETERMINISTIC ORCHESTRATOR|claude-p|` +
	`human_feedback|subset|rotation|auditor|conviction|\bcycles?\b|PRIMACY`)

// ownPipeline has a role that answers, one that judges, and one that fails at first.
const ownPipeline = `pipeline: letters
agents:
  writer: {run: [sh, AGENT, writer], reply: text}
  reader: {run: [sh, AGENT, reader], reply: text}
limits: {backoff: {first: 10ms}, time_scale: 0.01}
roles:
  drafter: {prompt: prompts/draft.md, gives: report, agent: writer}
  reader: {prompt: prompts/read.md, gives: report, agent: reader, verdict: {find: 'VERDICT: (okay|again)'}}
stages:
  - name: draft
    steps: [{role: drafter}]
  - name: polish
    repeat: {max: 2, until: verdict == okay}
    steps: [{role: drafter, see: last}, {role: reader, see: last}]
`

// ownAgent fails its first call with exit code 7, and the reader never approves.
const ownAgent = `cat > /dev/null
if [ "$1" = writer ] && [ ! -e "$0.failed" ]; then
  touch "$0.failed"; echo "no model named xyz" >&2; exit 7
fi
echo "The text of the $1."
[ "$1" = reader ] && echo "VERDICT: again"
exit 0
`

// ownDefinition writes the definition, its agent and its prompts to a folder.
func (h *environment) ownDefinition() string {
	folder := h.dir("own")
	agent := filepath.Join(folder, "agent.sh")
	for name, text := range map[string]string{
		"agent.sh": ownAgent, "prompts/draft.md": "Write.\n", "prompts/read.md": "Read and judge.\n",
		"letters.yaml": regexp.MustCompile("AGENT").ReplaceAllLiteralString(ownPipeline, agent),
	} {
		require.NoError(h.t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755))
		require.NoError(h.t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return filepath.Join(folder, "letters.yaml")
}

func TestOrdinaryPipelineIsReportedInItsOwnWords(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir := h.dir("run")
	output, code := h.try("run", "--config", h.ownDefinition(), "--task", "Write a letter", "--output-dir", dir)
	require.Equal(t, 3, code, "the last loop did not meet its condition")
	require.Contains(t, output, "Done, not approved: 2 stages, 2 rounds, verdict again")
	require.Contains(t, output, "agent exited with code 7: no model named xyz")
	require.Contains(t, output, "Polish, round 2 of at most 2")
	for _, args := range [][]string{
		{"status", dir}, {"status", dir, "--json"}, {"list"}, {"list", "--json"}, {"watch", dir}, {"logs", dir},
		{"diagnose", dir}, {"diagnose", dir, "--json"}, {"cost-report", dir}, {"quality-report", dir},
		{"evidence", dir}, {"checkpoints", dir}, {"compare", dir, dir}, {"report", dir, "--out", "-"},
	} {
		text, _ := h.try(args...)
		require.NotRegexp(t, foreignWords, regexp.MustCompile(`(?s)<style>.*?</style>`).ReplaceAllString(text, ""), args)
		output += text
	}
	require.NotRegexp(t, foreignWords, string(read(t, dir+"/_orchestrator/steps/polish-2-round-2/reader-prompt.md")))
	require.Contains(t, output, "agent-exit-nonzero")
	require.Regexp(t, `Status: +done, not approved`, output)
	require.Regexp(t, `letters +done, not approved`, output)
	require.Contains(t, output, "2 stages, 2 rounds, verdict again")
	require.Regexp(t, `reader +2 `, output, "a role of the pipeline has a row of its own")
	require.NotContains(t, output, "$0.00", "what an agent does not report is unknown")
}

func TestCommandsTakeFilesShortIDsAndMovedDirectories(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	file, dir := h.ownDefinition(), h.dir("my run")
	out, code := h.tryOutput("run", file, "--json", "--output-dir", dir)
	require.Equal(t, 3, code, out)
	var started struct {
		RunID     string `json:"run_id"`
		Directory string `json:"directory"`
		Status    string `json:"status"`
		New       bool   `json:"new"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &started), out)
	require.Equal(t, []any{dir, "done", true}, []any{started.Directory, started.Status, started.New})
	short := started.RunID[:6]
	require.Contains(t, output(h.try("status", short)), started.RunID)

	refused, code := h.try("pause", short)
	require.Equal(t, 5, code, refused)
	require.NotRegexp(t, `\[[a-z]+ [a-z]+`, refused, "no list as Go prints it")

	require.NoError(t, os.Rename(dir, h.dir("elsewhere")))
	for _, verb := range []string{
		"status", "diagnose", "logs", "cost-report", "report", "evidence", "checkpoints", "check", "watch", "diff",
		"pause", "resume", "decide", "budget --usd 5", "attach", "cancel", "promote --to here",
	} {
		words := strings.Fields(verb)
		text, code := h.try(append([]string{words[0], short}, words[1:]...)...)
		require.Equal(t, 2, code, "%s: %s", verb, text)
		require.Contains(t, text, "if the directory was moved, name its new path", verb)
	}
	require.Contains(t, output(h.try("status", h.dir("elsewhere"))), started.RunID)
}

// tryOutput runs the starter to its end and returns what it prints to standard output.
func (h *environment) tryOutput(args ...string) (output string, code int) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 3*time.Minute)
	defer cancel()
	out, err := h.command(ctx, args...).Output()
	h.meet()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out), exit.ExitCode()
	}
	require.NoError(h.t, err)
	return string(out), 0
}

// output drops the exit code.
func output(text string, _ int) string { return text }
