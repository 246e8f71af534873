package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/rundir"
)

func TestQuantile(t *testing.T) {
	for _, row := range []struct {
		name  string
		of    []int
		share float64
		want  int
	}{
		{"none", nil, 0.5, 0},
		{"one", []int{7}, 0.95, 7},
		{"the middle of three", []int{9, 1, 4}, 0.5, 4},
		{"of four, the lower middle", []int{4, 3, 2, 1}, 0.5, 2},
		{"p95 of twenty", []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}, 0.95, 19},
		{"all of them", []int{1, 2, 3}, 1, 3},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, quantile(row.of, row.share)) })
	}
}

func TestSizes(t *testing.T) {
	got, err := parseSizes("1x56,16x8")
	require.NoError(t, err)
	require.Equal(t, []size{{1, 56}, {16, 8}}, got)
	for _, bad := range []string{"", "8", "0x8", "1x0", "1x12", "ax8", "1x8,"} {
		_, err := parseSizes(bad)
		require.ErrorContains(t, err, "write runs x passes", bad)
	}
}

func TestDefinitionHasExpectedPasses(t *testing.T) {
	for _, named := range []bool{true, false} {
		def, err := define(t.TempDir(), "/bin/agent", 24, named)
		require.NoError(t, err)
		require.Equal(t, 24, def.Plan.Total)
		require.Empty(t, def.Warnings)
		plan, err := json.Marshal(def.Plan)
		require.NoError(t, err)
		require.Equal(t, named, strings.Contains(string(plan), `"cp-S3"`))
	}
}

func TestPassTimesComeFromTheJournal(t *testing.T) {
	journal := `{"seq":1,"ts":"2026-01-02T03:04:05.000Z","kind":"run.start","phase":null,"payload":{}}
{"seq":2,"ts":"2026-01-02T03:04:05.100Z","kind":"pass.start","phase":"bench","payload":{}}
{"seq":3,"ts":"2026-01-02T03:04:05.120Z","kind":"pass.end","phase":"bench","payload":{}}
{"seq":4,"ts":"2026-01-02T03:04:05.130Z","kind":"pass.start","phase":"bench","payload":{}}
{"seq":5,"ts":"2026-01-02T03:04:05.190Z","kind":"pass.end","phase":"bench","payload":{}}
{"seq":6,"ts":"2026-01-02T03:04:06.000Z","kind":"run.end","phase":null,"payload":{}}
`
	dir := rundir.At(t.TempDir())
	require.NoError(t, os.WriteFile(dir.Path("events.jsonl"), []byte(journal), 0o600))
	begun, ended, err := passTimes(dir)
	require.NoError(t, err)
	require.Equal(t, []time.Duration{30 * time.Millisecond}, gaps(begun))
	require.Equal(t, time.Date(2026, 1, 2, 3, 4, 5, 190e6, time.UTC), ended)
}

// historyPage is a handwritten history.
type historyPage []*historypb.HistoryEvent

func (e *historyPage) HasNext() bool { return len(*e) > 0 }

func (e *historyPage) Next() (*historypb.HistoryEvent, error) {
	first := (*e)[0]
	*e = (*e)[1:]
	return first, nil
}

func TestShareOfAHistory(t *testing.T) {
	at := func(ms int64) *timestamppb.Timestamp { return timestamppb.New(time.UnixMilli(ms)) }
	history := &historyPage{
		{EventId: 2, EventTime: at(0), EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED},
		{EventId: 3, EventTime: at(4), EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_STARTED,
			Attributes: &historypb.HistoryEvent_WorkflowTaskStartedEventAttributes{
				WorkflowTaskStartedEventAttributes: &historypb.WorkflowTaskStartedEventAttributes{ScheduledEventId: 2}}},
		{EventId: 4, EventTime: at(10), EventType: enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
			Attributes: &historypb.HistoryEvent_WorkflowTaskCompletedEventAttributes{
				WorkflowTaskCompletedEventAttributes: &historypb.WorkflowTaskCompletedEventAttributes{ScheduledEventId: 2}}},
		{EventId: 5, EventTime: at(10), EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
			Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
				ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
					ActivityType: &commonpb.ActivityType{Name: "Project"},
				}}},
		{EventId: 6, EventTime: at(11), EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED,
			Attributes: &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{
				ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: 5}}},
		{EventId: 7, EventTime: at(31), EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
			Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
				ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: 5}}},
	}
	got := map[string]spent{"Project": {times: 1, wait: time.Millisecond, work: time.Millisecond}}
	require.NoError(t, share(history, got))
	require.Equal(t, map[string]spent{
		"workflow task": {1, 4 * time.Millisecond, 6 * time.Millisecond},
		"Project":       {2, 2 * time.Millisecond, 21 * time.Millisecond},
	}, got)
}

// A player leaves the files that the run left, with as many bytes.
func TestPlainLoopWritesTheBytesOfTheRun(t *testing.T) {
	dir := t.TempDir()
	var steps []step
	disk := durable.Disk{Hook: func(s durable.Step) error {
		steps = append(steps, step{s.Op, strings.TrimPrefix(s.Path, dir), len(s.Data)})
		return nil
	}}
	require.NoError(t, disk.Mkdir(filepath.Join(dir, "a", "b"), 0o755))
	require.NoError(t, disk.WriteFile(filepath.Join(dir, "a", "whole"), []byte("12345"), 0o600))
	require.NoError(t, disk.WriteFile(filepath.Join(dir, "a", "whole"), []byte("123"), 0o600))
	_, err := disk.Append(filepath.Join(dir, "a", "b", "growing"), 0, []byte("1234"), 0o600)
	require.NoError(t, err)
	_, err = disk.Append(filepath.Join(dir, "a", "b", "growing"), 4, []byte("12"), 0o600)
	require.NoError(t, err)
	for range 2 {
		_, err = disk.CreateExclusive(filepath.Join(dir, "once"), []byte("1"), 0o600)
		require.NoError(t, err)
	}
	require.Equal(t, 14, fsyncs(steps), steps)

	p := newPlayer(filepath.Join(t.TempDir(), "loop"), "", nil)
	require.NoError(t, p.run(context.Background(), steps))
	left := map[string]int64{}
	require.NoError(t, filepath.Walk(p.root, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			left[strings.TrimPrefix(path, p.root)] = info.Size()
		}
		return err
	}))
	require.Equal(t, map[string]int64{"/a/whole": 3, "/a/b/growing": 6, "/once": 1}, left)
	require.Empty(t, p.files, "a file was not closed")
}

// The whole of it, as small as it can be.
func TestBench(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", "")
	var out bytes.Buffer
	require.NoError(t, bench(t.Context(), []string{"-root", "../..", "-temp", t.TempDir(), "-reps", "1", "-sizes",
		"2x8"}, &out))
	require.Contains(t, out.String(), "Embedded server, medians of 1.")
	require.Regexp(t, `(?m)^\| 2 \| 8 \| \d+\.\d ms \|`, out.String())
	require.Regexp(t, `(?m)^\| Turn \| 1\.00 \|`, out.String())
}
