package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/modelapi"
	"github.com/passbook-run/passbook/test/realcli"
)

// reviewedByClaude changes and reviews a file, and asks when its only round is used up.
const reviewedByClaude = `pipeline: reviewed
agent: {run: [%s], reply: claude-stream, sandbox: none}
workspace: {dir: project}
roles:
  implementer: {prompt: implement.md, gives: changes}
  reviewer: {prompt: review.md, gives: report, verdict: {schema: review}}
stages:
  - name: work
    steps: [{role: implementer}]
  - name: review
    repeat: {max: 1, until: verdict == approved, otherwise: ask}
    steps: [{role: reviewer}, {role: implementer, see: last}]
`

// TestDecidedClaude takes the real claude through a rejection, feedback, another change and its verdict. It takes about
// 15 s.
func TestDecidedClaude(t *testing.T) {
	t.Parallel()
	review := func(ready bool, blockers string) modelapi.Turn {
		return modelapi.Turn{Text: fmt.Sprintf("I read it.\n```json\n{\"ship_ready\": %t, \"findings\": [], "+
			"\"blockers\": [%s], \"gaps\": []}\n```", ready, blockers)}
	}
	var turns []modelapi.Turn
	write := func(word string, then modelapi.Turn) {
		turns = append(turns, modelapi.Turn{Text: "I write.", Tool: "Bash", Input: map[string]string{
			"command": "echo " + word + " >>work.txt", "description": "Write"}},
			modelapi.Turn{Text: "I wrote " + word + "."}, then)
	}
	write("one", review(false, `"one is not enough"`))
	write("two", review(false, `"two are not enough"`))
	write("three", review(true, ""))
	a := newRealAgent(t, realcli.Claude(), "Bash", "command", "-p", "--output-format", "stream-json", "--verbose",
		"--allowedTools", "Bash")
	a.api.Close()
	a.api = realcli.Claude().API(turns...)
	t.Cleanup(a.api.Close)
	require.NoError(t, a.shim(realcli.Claude(), filepath.Join(filepath.Dir(a.argv[0]), "home")))

	h := newEnv(t)
	require.NoError(t, os.MkdirAll(filepath.Join(h.root, "project"), 0o700))
	for name, text := range map[string]string{
		"pipeline.yaml": fmt.Sprintf(reviewedByClaude, yamlWords(a.argv)), "implement.md": "Write it.\n",
		"review.md": "Review it.\n", "project/work.txt": "zero\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(h.root, name), []byte(text), 0o600))
	}
	dir := h.dir("run")
	h.starter("run", "--config", filepath.Join(h.root, "pipeline.yaml"), "--output-dir", dir, "--detach")
	q := h.asked(dir, 1)
	require.Equal(t, "rejected by reviewer, 1 blocker", q.Judged.Text())
	require.Equal(t, []string{"work.txt"}, q.Change.Files)
	shown := h.starter("decide", "--show", dir)
	require.Contains(t, shown, "│ blocker  two are not enough")
	require.Contains(t, shown, "1 file changed, 2 insertions(+)")
	h.starter("decide", dir, "--action", "retry_feedback", "--feedback", "a third one")
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })

	require.Equal(t, "zero\none\ntwo\nthree\n", string(read(t, filepath.Join(dir, layout.WorkspaceDir, "work.txt"))))
	asked, _ := a.api.Asked()
	require.Len(t, asked, len(turns), "no other call is made")
	for _, part := range []string{"Review: verdict == approved is not met after 1 round", "two are not enough",
		"I wrote two.", "a third one"} {
		require.Contains(t, string(asked[6].Body), part, "the model that changes the work")
	}
	require.Contains(t, string(asked[8].Body), "a third one", "the model that judges the change")
	require.Contains(t, string(asked[2].Body), "ship_ready", "the form of the verdict")
	h.sound(dir)
}
