package workflows_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/workflows"
)

// Histories are what `temporal workflow show -o json` prints, gzipped; the commit that made them stands in the
// name. To record them afresh, which a release forbids: go test ./workflows -run TestRecord -record
const histories = "testdata/histories"

func readHistory(t *testing.T, path string) *historypb.History {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	raw, err := io.ReadAll(z)
	require.NoError(t, err)
	h, err := client.HistoryFromJSON(bytes.NewReader(raw), client.HistoryJSONOptions{})
	require.NoError(t, err)
	return h
}

func replay(h *historypb.History) error {
	r := worker.NewWorkflowReplayer()
	workflows.Register(r, nil, nil)
	return r.ReplayWorkflowHistory(log.NewStructuredLogger(slog.New(slog.DiscardHandler)), h)
}

func recorded(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(histories, "*.json.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	return paths
}

func TestReplay(t *testing.T) {
	for _, path := range recorded(t) {
		t.Run(filepath.Base(path), func(t *testing.T) { require.NoError(t, replay(readHistory(t, path))) })
	}
}

func TestReplayDetectsNondeterminism(t *testing.T) {
	injuries := map[string]func(*historypb.HistoryEvent) bool{
		"another activity": func(e *historypb.HistoryEvent) bool {
			a := e.GetActivityTaskScheduledEventAttributes()
			if a.GetActivityType().GetName() != contract.RunPass {
				return false
			}
			a.ActivityType.Name = "RunAnotherPass"
			return true
		},
		"another pass": func(e *historypb.HistoryEvent) bool {
			a := e.GetActivityTaskScheduledEventAttributes()
			if a.GetActivityType().GetName() != contract.RunPass {
				return false
			}
			a.ActivityId = "pass-999"
			return true
		},
	}
	for name, injure := range injuries {
		t.Run(name, func(t *testing.T) {
			h := readHistory(t, recorded(t)[0])
			hurt := false
			for _, e := range h.Events {
				if hurt = injure(e); hurt {
					break
				}
			}
			require.True(t, hurt)
			require.ErrorContains(t, replay(h), "nondeterministic")
		})
	}
}
