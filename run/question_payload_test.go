package run_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// version1 reads a file that a program wrote whose states had version 1.
func version1(t *testing.T, name string) [][]byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "version-1", name))
	require.NoError(t, err)
	return bytes.Split(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n"))
}

// TestQuestionsKeepTheirPayloads: what asks and answers is written as it was before the kinds had one type, to the
// byte.
func TestQuestionsKeepTheirPayloads(t *testing.T) {
	seen := map[run.QuestionKind]int{}
	for _, line := range version1(t, "questions.jsonl") {
		e, err := run.ParseEvent(line)
		require.NoError(t, err)
		var payload any
		if q, asks := e.Question(); asks {
			payload = q
			seen[q.Kind]++
		} else if d, answers := e.Decision(); answers {
			payload = d
			seen[d.Kind]++
		} else {
			continue
		}
		e.Payload, err = run.Payload(payload)
		require.NoError(t, err)
		again, err := e.Line()
		require.NoError(t, err)
		require.Equal(t, string(line), again)
	}
	require.Len(t, seen, 4)
}

// TestStatesOfVersion1AreUpgraded to what their events fold into now.
func TestStatesOfVersion1AreUpgraded(t *testing.T) {
	lines, states := version1(t, "questions.jsonl"), version1(t, "states-v1.jsonl")
	var now run.State
	for i, line := range lines {
		e, err := run.ParseEvent(line)
		require.NoError(t, err)
		now = run.Apply(now, e)
		require.Empty(t, now.InvalidTransition)
		now.Used = run.Used{}               // counted by this version only
		now.Decisions, now.About = nil, nil // likewise
		if now.Decided != nil {
			now.Decided.Back = nil
		}
		var old run.State
		require.NoError(t, json.Unmarshal(states[i], &old))
		require.Equal(t, run.StateVersion, old.Version)
		require.JSONEq(t, picture(t, now), picture(t, old), "after event %d", e.Seq)
		require.Equal(t, picture(t, old), picture(t, carried(t, old)), "an upgraded state is read as it is")
	}

	var both run.State // a gate beside a hand-off that was left undecided
	require.NoError(t, json.Unmarshal(states[len(lines)], &both))
	q, open := both.Asks()
	require.True(t, open)
	require.Equal(t, run.QuestionGate, q.Kind)
	h, open := both.Open(run.QuestionHandoff)
	require.True(t, open)
	require.Equal(t, "plan:1:2:d3", h.ID)
	require.Equal(t, &run.Decided{Kind: run.QuestionReview, ID: "q", Action: "approve"}, both.Decided)
}

func TestCheckpointsOfVersion1AreUpgraded(t *testing.T) {
	c, err := run.ReadCheckpoint(version1(t, "checkpoint-v1.json")[0], "run-1", "cp-2")
	require.NoError(t, err)
	q, open := c.State.Asks()
	require.True(t, open)
	require.Equal(t, run.QuestionHandoff, q.Kind)
	require.Equal(t, []string{"continue", "retry_feedback", "halt", "continue_with_waiver"}, q.Actions)
}

// TestWrongTypesInAState are an error, and what fits is read.
func TestWrongTypesInAState(t *testing.T) {
	var s run.State
	require.Error(t, json.Unmarshal([]byte(`{"version":2,"run_id":7,"task":"t"}`), &s))
	require.Equal(t, "t", s.Task)
}
