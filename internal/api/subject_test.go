package api

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// asked is a directory whose last pass made a plan, after a command that failed.
func asked(t *testing.T, plan, output string) (rundir.Dir, run.Question) {
	t.Helper()
	d := rundir.At(t.TempDir())
	var journal strings.Builder
	q := run.Question{Kind: run.QuestionHandoff, ID: "h", Phase: "work"}
	for i, reply := range []string{output, plan} {
		p := run.Pass{Step: []string{"tests", "plan"}[i], Round: 1, Role: "planner", Number: i + 1}
		end := run.PassEnd{Pass: p, Reply: &run.Blob{Digest: disk.Digest([]byte(reply)), Size: int64(len(reply))}}
		if i == 0 {
			end.ID, end.Value = "tests", "failed"
			end.Validation.Checks = []run.Check{{Name: run.CheckExitCode, Detail: "exit code 2"}}
			q.Checks = []run.Value{{Name: "tests", Text: "failed"}}
		} else {
			q.Artifacts = []run.Attached{{Name: "plan", Digest: end.Reply.Digest}}
		}
		payload, err := json.Marshal(end)
		require.NoError(t, err)
		line, err := json.Marshal(map[string]any{"seq": i + 1, "ts": "2026-01-02T03:04:05.000Z", "kind": run.KindPassEnd,
			"payload": json.RawMessage(payload)})
		require.NoError(t, err)
		journal.Write(append(line, '\n'))
		file := d.Path(rundir.ReplyFile(p))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(reply), 0o600))
	}
	require.NoError(t, os.WriteFile(d.Path(rundir.EventsFile), []byte(journal.String()), 0o600))
	return d, q
}

// TestQuestionShowsWhatIsToBeApproved from its head, without the block for programs, and the output of a failed command
// before it.
func TestQuestionShowsWhatIsToBeApproved(t *testing.T) {
	plan := "# Goal\n\nGreet." + strings.Repeat("\nmore", 30) + "\n\n```json\n{\"changes\": []}\n```\n"
	d, q := asked(t, plan, "--- FAIL: TestGreet\nFAIL\n")
	about := Attachments(t.Context(), d, q)
	require.Len(t, about, 2)
	require.Equal(t, "Output of tests (exit code 2)", about[0].Name)
	require.Equal(t, []string{"--- FAIL: TestGreet", "FAIL"}, about[0].Lines)
	require.Equal(t, "Plan", about[1].Name)
	require.Equal(t, strings.Split("# Goal\n\nGreet."+strings.Repeat("\nmore", 30), "\n"), about[1].Lines)
}
