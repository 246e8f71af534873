package fsck_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// inVersion1 rewrites a small state as programs wrote it whose states had version 1. A directory of them has no digest
// of meta.json itself.
func inVersion1(t *testing.T, d projector.Dir) {
	t.Helper()
	raw, err := os.ReadFile(d.Path(layout.MetaFile))
	require.NoError(t, err)
	var meta map[string]any
	require.NoError(t, json.Unmarshal(raw, &meta))
	delete(meta, "digest")
	state := meta["state"].(map[string]any)
	state["version"] = 1
	questions, _ := state["questions"].([]any)
	delete(state, "questions")
	for _, each := range questions {
		q := each.(map[string]any)
		if q["kind"] == "handoff" {
			delete(q, "kind")
			state["handoff"] = q
			continue
		}
		state["question"] = q
	}
	if d, ok := state["decided"].(map[string]any); ok {
		if d["kind"] != "handoff" {
			d["type"] = d["kind"]
		}
		delete(d, "kind")
	}
	raw, err = json.Marshal(meta)
	require.NoError(t, err)
	write(t, d, layout.MetaFile, string(raw))
}

// TestDirectoriesWithStatesOfVersion1 are read, checked and continued.
func TestDirectoriesWithStatesOfVersion1(t *testing.T) {
	for name, ask := range map[string]func(*story) run.QuestionDecided{
		"hand-off": func(s *story) run.QuestionDecided {
			s.asks()
			return run.QuestionDecided{Kind: run.QuestionHandoff, ID: "h-1", Action: run.ActionContinue}
		},
		"gate": func(s *story) run.QuestionDecided {
			s.twoPasses()
			s.add(run.KindGateRequested, run.QuestionRequested{ID: "g-1", Trigger: run.TriggerCheckFailed,
				Actions: []string{run.ActionRetry}})
			return run.QuestionDecided{Kind: run.QuestionGate, ID: "g-1", Action: run.ActionRetry}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			answer := ask(s)
			s.send()
			d := written(t, s)
			before, err := fsck.Check(t.Context(), d.Dir, fsck.CheckOptions{})
			require.NoError(t, err)
			inVersion1(t, d)

			after, err := fsck.Check(t.Context(), d.Dir, fsck.CheckOptions{})
			require.NoError(t, err)
			require.Equal(t, before.Issues, after.Issues)
			m, err := d.Meta()
			require.NoError(t, err)
			q, open := m.State.Asks()
			require.True(t, open)
			require.Equal(t, answer.ID, q.ID)

			s.add(answer.Kind.Spec().Decided, answer)
			s.send()
			project(t, d, s, s.batches[len(s.batches)-1])
			inVersion1(t, d)
			after, err = fsck.Check(t.Context(), d.Dir, fsck.CheckOptions{})
			require.NoError(t, err)
			require.Empty(t, after.Issues)
			m, err = d.Meta()
			require.NoError(t, err)
			require.Equal(t, run.Running, m.State.Status)
			require.Equal(t, answer.Kind, m.State.Decided.Kind)
		})
	}
}
