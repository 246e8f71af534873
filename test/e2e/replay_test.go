package e2e_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// afterS5 is what the example does behind cp-S5: 16 passes, and in three cycles three auditors, a weaver and, but for
// the last, a revision.
const afterS5, picturesAfterS5 = 16 + 3*3 + 3 + 2, 3

// TestReplayOfTheWholeRun replays the example from cp-S5. What is called is counted in the agent's own log, outside of
// every run directory.
func TestReplayOfTheWholeRun(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	source := h.dir("source")
	h.starter("demo", "--output-dir", source)
	meta, page := metaOf(t, source), artifactOf(t, source)
	before := tree(t, source)
	for i, digest := range pagesBehind(t, source, "cp-S5") {
		blobs := find(t, filepath.Join(h.state(), "store"), digest)
		require.Len(t, blobs, 1, "page %d behind cp-S5", i)
		require.NoError(t, os.Remove(blobs[0]))
	}
	calls := h.count("start", "")

	recorded := h.dir("recorded")
	h.starter("replay", source, "--from", "cp-S5", "--output-dir", recorded)
	require.Equal(t, calls, h.count("start", ""), "an agent was called")
	require.Equal(t, page, artifactOf(t, recorded))
	require.Equal(t, sum(read(t, filepath.Join(source, "artifact.html"))),
		sum(read(t, filepath.Join(recorded, "artifact.html"))))
	events := eventsOf(t, recorded)
	require.Len(t, of[run.Effect](events, run.KindEffectReused), afterS5+picturesAfterS5)
	got := metaOf(t, recorded)
	require.Equal(t, afterS5+picturesAfterS5, got.State.Reused)
	require.Zero(t, got.State.Total(), "it was paid for by the other run")
	require.Equal(t, []string{meta.RunID, "cp-S5", run.ModeReplay, run.UseRecorded},
		[]string{got.Source.RunID, got.Source.Checkpoint, got.Source.Mode, got.Source.Replay})
	sameTree(t, before, tree(t, source))
	clean(t, recorded)

	require.NoError(t, os.RemoveAll(source)) // from here on the store is all that there is of it
	again := h.dir("again")
	h.starter("replay", meta.RunID, "--from", "cp-S5", "--policy", run.Reexecute, "--output-dir", again)
	require.Equal(t, calls+afterS5, h.count("start", ""), "exactly what comes behind the checkpoint is called")
	require.Zero(t, metaOf(t, again).State.Reused)
	require.Equal(t, page, artifactOf(t, again))

	h.tamper(meta.RunID, "pa-hardening/4.2.-.") // the revision of the second cycle
	tampered := h.dir("tampered")
	h.starter("replay", meta.RunID, "--from", "cp-S5", "--output-dir", tampered)
	require.NotEqual(t, page, artifactOf(t, tampered), "what was recorded is not what was used")
	require.Contains(t, string(read(t, filepath.Join(tampered, "artifact.html"))), tamperedWith)
	require.Equal(t, calls+afterS5+4, h.count("start", ""),
		"the last cycle asks about another page, so nobody has answered that")
}

// pagesBehind are the digests of a run's pages that it did not have yet at a checkpoint, each once.
func pagesBehind(t *testing.T, dir, checkpoint string) []string {
	t.Helper()
	var old, out []string
	behind := false
	for _, e := range eventsOf(t, dir) {
		switch e.Kind {
		case run.KindCheckpointCreated:
			var c run.CheckpointCreated
			e.Decode(&c)
			behind = behind || c.ID == checkpoint
		case run.KindArtifactUpdated:
			var u run.ArtifactUpdated
			e.Decode(&u)
			if d := u.Artifact.Digest; behind && !strings.Contains(strings.Join(append(old, out...), " "), d) {
				out = append(out, d)
			} else if !behind {
				old = append(old, d)
			}
		}
	}
	require.True(t, behind)
	require.NotEmpty(t, out)
	return out
}

// tamperedWith is what somebody has written into a recorded reply.
const tamperedWith = "<!-- somebody else wrote this -->"

// tamper puts another reply into the record of a call (step, round and member): a new blob, and the call's result
// pointing to it.
func (h *environment) tamper(runID, call string) {
	h.t.Helper()
	t, folder := h.t, filepath.Join(h.state(), "store")
	s, err := store.Open(t.Context(), "file://"+folder)
	require.NoError(t, err)
	defer s.Close()
	names, err := s.List(t.Context(), "calls/"+runID+"/g0."+call)
	require.NoError(t, err)
	hit := 0
	for _, name := range names {
		raw, err := s.ReadName(t.Context(), name)
		require.NoError(t, err)
		var result map[string]any
		if !strings.HasSuffix(name, "/result") {
			continue
		}
		require.NoError(t, json.Unmarshal(raw, &result))
		out := result["read"].(map[string]any)["artifact"].(map[string]any)
		page, err := s.Get(t.Context(), store.Digest(out["digest"].(string)))
		require.NoError(t, err)
		changed := bytes.Replace(page, []byte("</body>"), []byte(tamperedWith+"</body>"), 1)
		require.NotEqual(t, page, changed)
		d, err := s.Put(t.Context(), changed)
		require.NoError(t, err)
		out["digest"], out["size"] = string(d), len(changed)
		raw, err = json.Marshal(result)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, filepath.FromSlash(name)), raw, 0o600))
		hit++
	}
	require.Equal(t, 1, hit, "answers of %s", call)
}

// TestReplayPolicies replays small runs: what has no record is called, and with require_human nothing is before
// somebody has said so.
func TestReplayPolicies(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.starter("server", "start")
	o := h.operator(h.dial())
	t.Run("half a record", func(t *testing.T) { testHalfARecord(t, h.within(t), o) })
	t.Run("a person is asked", func(t *testing.T) { testAPersonIsAsked(t, h.within(t), o) })
}

// testHalfARecord replays a run that is in its third call: two answers are there.
func testHalfARecord(t *testing.T, h *environment, o operations.Operator) {
	t.Parallel()
	source := h.subject(t, o).steerAgents("hold-end").start().called(3)
	before := tree(t, source.dir.Root)
	r, err := source.branch(run.ModeReplay)
	require.NoError(t, err)
	source.called(4)
	until(t, "the replay has left the record", func() bool {
		m, err := r.dir.Meta()
		return err == nil &&
			m.Status == string(run.Running)
	})
	require.Equal(t, 2, metaOf(t, r.dir.Root).State.Passes.LastSettled)
	sameTree(t, before, tree(t, source.dir.Root))
	source.steerAgents("-hold-end").is(run.Done)
	r.is(run.Done)
	require.Len(t, of[run.Effect](eventsOf(t, r.dir.Root), run.KindEffectReused), 2)
	require.Equal(t, 4, source.calls())
}

// testAPersonIsAsked: before every call of a replay, and for each of them either the record or a call is chosen.
func testAPersonIsAsked(t *testing.T, h *environment, o operations.Operator) {
	t.Parallel()
	source := h.subject(t, o).start().is(run.Done).closed()
	from, err := o.Origin(t.Context(), source.id)
	require.NoError(t, err)
	st, err := o.Branch(t.Context(), from, operations.Branching{Mode: run.ModeReplay, Policy: run.RequireHuman})
	require.NoError(t, err)
	r := *source
	r.dir, r.id = st.Dir, st.RunID
	last := ""
	for n, action := range []string{run.ActionApply, run.ActionApprove, run.ActionApply} {
		until(t, "somebody is asked", func() bool {
			m, err := r.dir.Meta()
			return err == nil && len(m.State.Questions) > 0 && m.State.Questions[0].ID != last
		})
		last = metaOf(t, r.dir.Root).State.Questions[0].ID
		require.Equal(t, []int{3, 3, 4}[n], source.calls(), "nothing is called before")
		require.Len(t, of[run.Effect](eventsOf(t, r.dir.Root), run.KindEffectBlocked), n+1)
		_, err := o.Decide(t.Context(), r.dir, workflows.Message{Action: action})
		require.NoError(t, err)
	}
	r.is(run.Done)
	require.Equal(t, 4, source.calls(), "one was approved")
	require.Len(t, of[run.Effect](eventsOf(t, r.dir.Root), run.KindEffectReused), 2)
}
