package operations

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// fakeFar is a run on another host, whose workflow answers queries.
type fakeFar struct {
	*fakeTemporal
	answers map[string]any // by query
}

type jsonAnswer struct{ value any }

func (a jsonAnswer) HasValue() bool { return true }

func (a jsonAnswer) Get(to any) error {
	raw, err := json.Marshal(a.value)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}

func (f *fakeFar) QueryWorkflow(_ context.Context, _, _, query string, _ ...any) (converter.EncodedValue, error) {
	return jsonAnswer{f.answers[query]}, nil
}

func TestElsewhereNamesTheHost(t *testing.T) {
	f := &fakeFar{&fakeTemporal{described: map[string]enumspb.WorkflowExecutionStatus{"r-1": isOpen}}, map[string]any{
		workflows.QueryStatus:    run.State{RunID: "r-1", Status: run.Running},
		workflows.QueryDirectory: workflows.DirectoryAnswer{Dir: "/far", Queue: "passbook-dir-there"},
	}}
	o := Operator{Client: f}
	far, err := o.Elsewhere(t.Context(), "r-1")
	require.NoError(t, err)
	require.Equal(t, run.Running, far.State.Status)
	require.Equal(t, run.LiveOpen, far.Effective.Liveness)
	require.Equal(t, "the host of task queue passbook-dir-there", far.Host)
	f.pollers = map[string]*taskqueuepb.PollerInfo{
		"passbook-dir-there": {Identity: "1@far.example@", LastAccessTime: timestamppb.Now()}}
	far, err = o.Elsewhere(t.Context(), "r-1")
	require.NoError(t, err)
	require.Equal(t, "far.example", far.Host)
	_, err = o.Elsewhere(t.Context(), "r-2")
	require.ErrorContains(t, err, "ask Temporal about run r-2")
}

// TestFindIDFindsNoPaths finds recorded runs and those in the folder for runs, by their ids alone.
func TestFindIDFindsNoPaths(t *testing.T) {
	state, root, out := t.TempDir(), t.TempDir(), t.TempDir()
	wrote(t, filepath.Join(root, "a"), "aaa-1", "p", "begun")
	wrote(t, filepath.Join(root, "b"), "aaa-2", "p", "begun")
	wrote(t, filepath.Join(out, "c"), "ccc-1", "p", "begun")
	require.NoError(t, Index(state, "ccc-1", filepath.Join(out, "c")))
	require.NoError(t, Index(state, "ddd-1", filepath.Join(out, "gone")))
	t.Chdir(root)
	for id, want := range map[string]string{"aaa-1": filepath.Join(root, "a"), "ccc": filepath.Join(out, "c")} {
		d, err := FindID(state, root, id, false)
		require.NoError(t, err)
		require.Equal(t, want, d.Root)
	}
	var unknown *NameError
	for _, id := range []string{"a", "b", "aaa", "xyz", filepath.Join(out, "c")} {
		_, err := FindID(state, root, id, false)
		require.ErrorAs(t, err, &unknown, id)
	}
	var missing *MissingError
	_, err := FindID(state, root, "ddd-1", false)
	require.ErrorAs(t, err, &missing)
	require.NoError(t, os.RemoveAll(filepath.Join(out, "c")))
	_, err = FindID(state, root, "ccc-1", false)
	require.ErrorAs(t, err, &missing)
	wrote(t, filepath.Join(root, "moved"), "ccc-1", "p", "begun")
	d, err := FindID(state, root, "ccc", false)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(root, "moved"), d.Root)
}
