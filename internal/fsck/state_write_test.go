package fsck_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/records"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/run"
)

// wholeStory has every list of state.json grow, and a pass that is done once more.
func wholeStory(t *testing.T) *story {
	s := newStory(t)
	s.start()
	for i := 1; i <= 12; i++ {
		s.pass(i)
	}
	s.begin(about(3), 1)
	again := about(3)
	again.Description = "once more"
	s.end(again, "ok", 1)
	s.pass(13)
	s.send()
	return s
}

// What is taken over from the last state.json is what would be written again.
func TestStateIsWrittenAsIfItWereWrittenWhole(t *testing.T) {
	s := wholeStory(t)
	d := projector.At(filepath.Join(t.TempDir(), "run"))
	for _, b := range s.batches {
		project(t, d, s, b)
		raw, err := os.ReadFile(d.Path(layout.StateFile))
		require.NoError(t, err)
		state, err := records.State(d.Dir)
		require.NoError(t, err)
		require.Equal(t, indented(t, state), string(raw), "after event %d", b.First)
	}
	state, err := records.State(d.Dir)
	require.NoError(t, err)
	require.Len(t, state.PassRecords, 13)
	require.Len(t, state.ArtifactBackups, 7)
	require.Equal(t, "once more", state.PassRecords["3"].Description)
	require.Equal(t, "a pass", state.PassRecords["2"].Description)
}

func indented(t *testing.T, v any) string {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(v))
	return out.String()
}

// A state.json that was changed, in whatever layout, is made again from the events: nothing is taken over from it, and
// a copy of it stays.
func TestChangedStateIsRebuilt(t *testing.T) {
	s := wholeStory(t)
	for name, change := range map[string]func(text string) string{
		"a word of the same length": func(text string) string { return strings.Replace(text, "a pass", "A PASS", 1) },
		"another layout of the same length": func(text string) string {
			var out bytes.Buffer
			require.NoError(t, json.Compact(&out, []byte(strings.Replace(text, "a pass", "A PASS", 1))))
			return out.String() + strings.Repeat(" ", len(text)-out.Len())
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := projector.At(filepath.Join(t.TempDir(), "run"))
			require.NoError(t, d.Take(claim()))
			project(t, d, s, s.batches[:5]...)
			raw, err := os.ReadFile(d.Path(layout.StateFile))
			require.NoError(t, err)
			changed := change(string(raw))
			require.NoError(t, os.WriteFile(d.Path(layout.StateFile), []byte(changed), 0o600))
			project(t, d, s, s.batches[5:]...)
			state, err := records.State(d.Dir)
			require.NoError(t, err)
			require.Equal(t, "a pass", state.PassRecords["1"].Description)
			require.Len(t, state.PassRecords, 13)
			require.Equal(t, changed, look(t, d)["_orchestrator/torn/state-damaged-"+digestOf(changed)[:8]+".json"])
		})
	}
}

// oneSet is a set of two passes and its checkpoint, whose batch begins with the end of the second pass. ended is the
// last event before the checkpoint.
func oneSet(t *testing.T) (s *story, ended int64) {
	s = newStory(t)
	s.start()
	s.begin(about(1), 1)
	s.end(about(1), "ok", 1)
	s.begin(about(2), 1)
	s.end(about(2), "ok", 1)
	ended = s.state.Seq
	s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S1", AtPass: 2})
	s.begin(about(3), 1)
	return s, ended
}

// A pass and the checkpoint behind it come in one batch; state.json is written for each of them, for the pass first.
func TestStateIsWrittenForAPassAndForItsCheckpoint(t *testing.T) {
	s, ended := oneSet(t)
	d := projector.At(filepath.Join(t.TempDir(), "run"))
	project(t, d, s, s.batches[:len(s.batches)-1]...)
	var seqs []int64
	d.Disk = durable.Disk{Hook: func(st durable.Step) error {
		if st.Op == durable.OpWrite && strings.Contains(st.Path, "/state.json.tmp.") {
			var written struct{ LastSeq int64 }
			require.NoError(t, json.Unmarshal(st.Data, &written))
			seqs = append(seqs, written.LastSeq)
		}
		return nil
	}}
	project(t, d, s, s.batches[len(s.batches)-1])
	require.Equal(t, []int64{ended, s.state.Seq}, seqs)
}

// A projection that is cut off behind the pass's state.json leaves it ahead of meta.json. While all is made again,
// readers never see it go back.
func TestStateNeverGoesBack(t *testing.T) {
	s, _ := oneSet(t)
	last := len(s.batches) - 1
	for k := 0; ; k++ {
		d := projector.At(filepath.Join(t.TempDir(), "run"))
		project(t, d, s, s.batches[:last]...)
		calls := 0
		d.Disk = durable.Disk{Hook: func(durable.Step) error {
			if calls++; calls > k {
				return errStop
			}
			return nil
		}}
		_, stopped := d.Project(t.Context(), s.blobs, s.batches[last])
		stood := lastSeq(t, d)
		d.Disk = durable.Disk{Hook: func(st durable.Step) error {
			if st.Op == durable.OpSyncFolder {
				require.GreaterOrEqual(t, lastSeq(t, d), stood, "stopped before step %d", k)
			}
			return nil
		}}
		project(t, d, s, s.batches[last])
		if stopped == nil {
			require.Greater(t, k, 20, "the hook never fired")
			return
		}
	}
}

func lastSeq(t *testing.T, d projector.Dir) int64 {
	state, err := records.State(d.Dir)
	require.NoError(t, err)
	return state.LastSeq
}
