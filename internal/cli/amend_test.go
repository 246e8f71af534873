package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

const threeSteps = `pipeline: three
agent: {run: [scripted], reply: claude-json}
budget: {usd: 5}
roles:
  writer: {prompt: prompt.md, gives: report}
stages:
  - name: write
    steps: [{role: writer}, {role: writer}, {role: writer}]
`

// TestReplayAmendsAtTheSamePlace replays a run that was amended between two checkpoints, from before and from after.
func TestReplayAmendsAtTheSamePlace(t *testing.T) {
	w := newHost(t)
	s, err := store.Open(t.Context(), "file://"+filepath.Join(w.state, "store"))
	require.NoError(t, err)
	stored := func(text string) (ref run.PlanRef) {
		require.NoError(t, os.WriteFile("three.yaml", []byte(text), 0o644))
		def, err := operations.LoadFile("three.yaml")
		require.NoError(t, err)
		up, err := def.Upload(t.Context(), s)
		require.NoError(t, err)
		return run.PlanRef{Definition: up.Definition, Plan: up.Plan, Inputs: up.Inputs, Policy: up.Policy,
			ConfigHash: def.Plan.ConfigHash}
	}
	first, next := stored(threeSteps), stored(strings.Replace(threeSteps, "usd: 5", "usd: 9", 1))
	id, dir := "cccc-amended", filepath.Join(w.root, "runs", "amended")
	terms := run.PlanTerms{TotalPasses: 3, Stages: []run.StageRef{{Name: "write", Kind: "once"}}}
	start := run.RunStart{Pipeline: "three", RunID: id, ThreadID: id, Epoch: 1, Wording: run.WordingStages}
	begun := func(n int) event {
		p := writing
		p.Number = n
		return event{run.KindPassStart, run.PassStart{Pass: p, Attempt: 1}}
	}
	ended := func(n int) event {
		p := writing
		p.Number = n
		return event{run.KindPassEnd, run.PassEnd{Pass: p, Outcome: run.CategoryOK, Attempts: 1,
			Next: &run.Place{Round: 1, Step: n}}}
	}
	w.record(t, dir, run.Claim{RunID: id, Pipeline: "three"}, event{run.KindRunStart, start.Under(first, terms)},
		begun(1), ended(1), begun(1),
		event{run.KindRunAmended, run.RunAmended{Old: first, New: next, Terms: terms, Running: true}},
		begun(2), ended(2), begun(3), ended(3), event{run.KindRunEnd, run.RunEnd{Status: run.Done}})

	for from, at := range map[string]*run.Place{"cp-1": {Round: 1, Step: 2}, "pass-2": {Round: 1, Step: 2},
		"pass-3": nil} {
		output, code := w.here("replay", id, "--from", from, "--output-dir", filepath.Join(w.root, "of-"+from),
			"--detach")
		require.Equal(t, 0, code, output)
		start := w.temporal.input().Start
		if at == nil {
			require.Equal(t, next.Plan, start.Plan, "it begins with the amended plan")
			require.Empty(t, start.Amendments)
			continue
		}
		require.Equal(t, first.Plan, start.Plan, from)
		require.Len(t, start.Amendments, 1, from)
		require.Equal(t, *at, start.Amendments[0].At, from)
		require.Equal(t, next, start.Amendments[0].New, from)
		require.Equal(t, []run.Amendable{{Name: "budget.usd", Old: "5", New: "9"}}, start.Amendments[0].Differences, from)
	}
}
