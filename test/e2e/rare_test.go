package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

const rarePipeline = `pipeline: rare
agent: {run: [scripted], env: [PASSBOOK_CALL_LOG, PASSBOOK_FAULTS]}
agents:
  limited: {run: [sh, LIMITED], reply: claude-json, account: limited}
  other: {run: [sh, -c, 'cat >/dev/null; echo Hello.'], reply: text, account: other}
artifact: {file: page.html, seed: seed.html}
roles:
  reader: {prompt: read.md, gives: report}
  greeter: {prompt: read.md, gives: report, agent: limited, limits: {fallback: [other]}}
stages:
  - name: read
    steps:
      - {role: reader}
      - {role: reader}
      - {role: greeter}
      - ask: {question: 'Continue?', remind: 1s, expires: 3s, on_expiry: continue}
`

// TestRareTurnsOfARun: a limit that ends by a pause, an edit in it, a revert that is refused, a limit that ends by a
// resume, a call that goes to the next agent, a reminder, and a question that expires. The stored histories have these turns from here.
func TestRareTurnsOfARun(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil("- {at: 2, attempt: 1-2, do: is_error, text: \"You've hit your limit · resets in 1h\"}\n")
	folder := h.dir("rare")
	config := h.definition(folder, strings.Replace(rarePipeline, "LIMITED", filepath.Join(folder, "limited.sh"), 1), map[string]string{"read.md": "Read it.\n", "seed.html": "<p>Seed</p>\n",
		"limited.sh": `cat >/dev/null
cat <<'EOF'
{"type":"result","subtype":"success","is_error":true,"result":"You've hit your limit · resets in 1h"}
EOF
`})
	dir := h.dir("run")
	h.starter("run", "--config", config, "--output-dir", dir, "--detach")
	limits := func(n int) {
		t.Helper()
		until(t, "the run waits for a limit", func() bool {
			return statusIs(dir, run.WaitingLimit) && len(of[run.RunLimited](eventsOf(t, dir), run.KindRunLimited)) == n
		})
	}
	limits(1)
	h.starter("pause", dir)
	until(t, "the run is paused", func() bool { return statusIs(dir, run.Paused) })
	require.NoError(t, os.WriteFile(filepath.Join(dir, "page.html"), []byte("<p>Edited</p>\n"), 0o600))
	require.NoError(t, h.dial().SignalWorkflow(t.Context(), metaOf(t, dir).RunID, "", contract.VerbRevert,
		contract.Message{To: "cp-none"}))
	until(t, "the revert is refused", func() bool { return metaOf(t, dir).State.Refused == 1 })
	h.starter("resume", dir)
	limits(2)
	h.starter("resume", dir)
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })

	events := eventsOf(t, dir)
	var causes []string
	for _, p := range of[run.RunUnlimited](events, run.KindRunUnlimited) {
		causes = append(causes, string(p.Cause))
	}
	require.Equal(t, []string{string(run.LimitOperator)}, causes, "the first wait ended by the pause")
	attempts := of[run.PassAttempt](events, run.KindPassAttempt)
	require.Equal(t, "sh", attempts[len(attempts)-1].Fallback)
	edits := of[run.ArtifactUpdated](events, run.KindArtifactUpdated)
	require.Equal(t, run.CauseEdited, edits[len(edits)-1].Cause)
	decided := of[run.QuestionDecided](events, run.KindHandoffDecided)
	require.Equal(t, "expiry", decided[0].DecidedBy)
	require.NotEmpty(t, of[run.QuestionReminded](events, run.KindQuestionReminded))
	require.Equal(t, 3, h.count("start", "002"), "%v", h.calls())
	require.Equal(t, "<p>Edited</p>\n", string(read(t, filepath.Join(dir, "page.html"))))
	h.valid(dir)
}
