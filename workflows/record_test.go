package workflows_test

import (
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/local"
	"github.com/passbook-run/passbook/rundir"
)

var record = flag.Bool("record", false, "record the histories of testdata/histories afresh")

// TestRecord runs the tiny example with the real programs, whole and cut into many executions, and keeps the histories.
func TestRecord(t *testing.T) {
	if !*record {
		t.Skip("histories are recorded with -record only")
	}
	starter := filepath.Join(t.TempDir(), "starter")
	output(t, nil, "go", "build", "-o", starter, "../starter")
	commit := strings.TrimSpace(output(t, nil, "git", "rev-parse", "--short", "HEAD"))
	old, err := filepath.Glob(filepath.Join(histories, "*.json.gz"))
	require.NoError(t, err)
	for _, path := range old {
		require.NoError(t, os.Remove(path))
	}
	require.NoError(t, os.MkdirAll(histories, 0o755))
	for name, settings := range map[string][]string{"tiny": nil, "tiny-cut": {"PASSBOOK_CONTINUE_AFTER=9"}} {
		for i, h := range runAndShow(t, starter, settings) {
			keep(t, filepath.Join(histories, fmt.Sprintf("%s-%d-%s.json.gz", name, i+1, commit)), h)
		}
	}
}

func output(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	require.NoError(t, err, "%s %v", name, args)
	return string(out)
}

// runAndShow gives the histories of all executions of one run.
func runAndShow(t *testing.T, starter string, settings []string) []*historypb.History {
	t.Helper()
	ctx := context.Background()
	state, dir := t.TempDir(), filepath.Join(t.TempDir(), "run")
	t.Cleanup(func() { _, _ = local.Stop(ctx, state, 20*time.Second) })
	output(t, append(settings, "PASSBOOK_STATE_DIR="+state), starter, "demo", "--tiny", "--output-dir", dir)
	st, err := local.Read(state)
	require.NoError(t, err)
	require.NotNil(t, st.Server)
	c, err := client.Dial(client.Options{HostPort: st.Server.Address})
	require.NoError(t, err)
	defer c.Close()
	claim, err := rundir.At(dir).Claim()
	require.NoError(t, err)
	last := show(t, c, claim.RunID, "")
	var all []*historypb.History
	next := last.Events[0].GetWorkflowExecutionStartedEventAttributes().FirstExecutionRunId
	for next != "" {
		h := show(t, c, claim.RunID, next)
		all = append(all, h)
		next = h.Events[len(h.Events)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return all
}

func show(t *testing.T, c client.Client, workflowID, runID string) *historypb.History {
	t.Helper()
	h := &historypb.History{}
	it := c.GetWorkflowHistory(context.Background(), workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		require.NoError(t, err)
		h.Events = append(h.Events, e)
	}
	return h
}

func keep(t *testing.T, path string, h *historypb.History) {
	t.Helper()
	raw, err := temporalproto.CustomJSONMarshalOptions{Indent: "  "}.Marshal(h)
	require.NoError(t, err)
	f, err := os.Create(path)
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	_, err = z.Write(raw)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
}
