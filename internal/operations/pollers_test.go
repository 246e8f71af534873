package operations

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

func poller(identity string, at time.Time) *taskqueuepb.PollerInfo {
	return &taskqueuepb.PollerInfo{Identity: identity, LastAccessTime: timestamppb.New(at)}
}

// endedHere is the identity of a worker of this machine that has ended.
func endedHere(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("true")
	require.NoError(t, cmd.Run())
	host, err := os.Hostname()
	require.NoError(t, err)
	return fmt.Sprintf("%d@%s@", cmd.Process.Pid, host)
}

func TestNoWorker(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	at := func(ago time.Duration) string { return run.Time(now.Add(-ago)) }
	const there = "17@elsewhere@"
	shared := contract.StoreQueue("q", "s3://b")
	open := run.NewEffectiveStatus(run.Running, run.LiveOpen, "")
	bound, free := run.Claim{Store: "file:///s", Host: "h1", TaskQueue: "q"},
		run.Claim{Store: "s3://b", Host: "h1", TaskQueue: "q"}
	for _, row := range []struct {
		name      string
		claim     run.Claim
		effective run.EffectiveStatus
		pollers   map[string]*taskqueuepb.PollerInfo
		want      *run.NoWorker
	}{
		{"polled", bound, open, map[string]*taskqueuepb.PollerInfo{"q-dir-h1": poller(there, now)}, nil},
		{"a poll waits for a minute", bound, open,
			map[string]*taskqueuepb.PollerInfo{"q-dir-h1": poller(there, now.Add(-time.Minute))}, nil},
		{"a worker elsewhere was lost", bound, open,
			map[string]*taskqueuepb.PollerInfo{"q-dir-h1": poller(there, now.Add(-2*time.Minute))},
			&run.NoWorker{Queues: []string{"q-dir-h1"}, Since: at(2 * time.Minute)}},
		{"a worker of this machine was killed just now", bound, open,
			map[string]*taskqueuepb.PollerInfo{"q-dir-h1": poller(endedHere(t), now.Add(-time.Second))},
			&run.NoWorker{Queues: []string{"q-dir-h1"}, Since: at(time.Second)}},
		{"none that the server remembers", bound, open, nil, &run.NoWorker{Queues: []string{"q-dir-h1"}}},
		{"the host of the directory is away", free, open,
			map[string]*taskqueuepb.PollerInfo{shared: poller(there, now)},
			&run.NoWorker{Queues: []string{"q-dir-h1"}}},
		{"nobody runs workflows", free, open, map[string]*taskqueuepb.PollerInfo{shared: poller(there,
			now.Add(-3*time.Minute)), "q-dir-h1": poller(there, now)},
			&run.NoWorker{Queues: []string{shared}, Since: at(3 * time.Minute)}},
		{"the earliest counts", free, open, map[string]*taskqueuepb.PollerInfo{shared: poller(there,
			now.Add(-3*time.Minute)), "q-dir-h1": poller(there, now.Add(-4*time.Minute))},
			&run.NoWorker{Queues: []string{shared, "q-dir-h1"}, Since: at(4 * time.Minute)}},
		{"a paused run waits too: nothing answers a message", bound,
			run.NewEffectiveStatus(run.Paused, run.LiveOpen, ""), nil,
			&run.NoWorker{Queues: []string{"q-dir-h1"}}},
		{"closed", bound, run.NewEffectiveStatus(run.Done, run.LiveClosed, ""), nil, nil},
		{"unknown", bound, run.NewEffectiveStatus(run.Running, run.LiveUnknown, ""), nil, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := Operator{Client: &fakeTemporal{pollers: row.pollers}}
			require.Equal(t, row.want, o.NoWorker(t.Context(), row.claim, row.effective))
			o.WorkerStarts = true
			require.Nil(t, o.NoWorker(t.Context(), row.claim, row.effective))
		})
	}
}

// TestListAsksOnceForEachQueue however many runs it shows.
func TestListAsksOnceForEachQueue(t *testing.T) {
	f := &fakeTemporal{described: map[string]enumspb.WorkflowExecutionStatus{}}
	var rows []Row
	for i := range 50 {
		id := fmt.Sprintf("run-%d", i)
		f.described[id] = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
		rows = append(rows, Row{RunID: id, begun: true, EffectiveStatus: run.EffectiveStatus{Recorded: run.Running},
			claim: run.Claim{RunID: id, Store: "s3://b", Host: fmt.Sprintf("h%d", i%2), TaskQueue: "q"}})
	}
	l, err := Operator{Client: f}.List(t.Context(), rows, nil, Filter{})
	require.NoError(t, err)
	for _, r := range l.Runs {
		require.NotNil(t, r.EffectiveStatus.NoWorker, r.RunID)
	}
	require.ElementsMatch(t, []string{contract.StoreQueue("q", "s3://b"), "q-dir-h0", "q-dir-h1"}, f.asked)
}
