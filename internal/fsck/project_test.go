package fsck_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/records"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/run"
)

// TestOutcomes says what a projection answers to each directory, and that it writes nothing unless the answer is
// written.
func TestOutcomes(t *testing.T) {
	s := whole(t)
	n := len(s.lines)
	half := n / 2
	other := slices.Clone(s.lines)
	other[half] = `{"seq":0,"kind":"someone.else"}`
	rows := []struct {
		name    string
		disk    int // lines that are there
		hurt    func(d projector.Dir)
		give    projector.Batch
		outcome run.Projection
		last    int
	}{
		{"the next lines", half, nil, batch(s.lines, half+1, n), run.ProjectionWritten, n},
		{"lines that are there", n, nil, batch(s.lines, half+1, n), run.ProjectionWritten, n},
		{"lines of which some are there", half + 3, nil, batch(s.lines, half+1, n), run.ProjectionWritten, n},
		{"the whole journal at once", 0, nil, batch(s.lines, 1, n), run.ProjectionWritten, n},
		{"nothing new", half, nil, batch(s.lines, half+1, half), run.ProjectionWritten, half},
		{"lines are missing before", half, nil, batch(s.lines, half+2, n), run.ProjectionGap, half},
		{"an empty directory", 0, nil, batch(s.lines, 2, n), run.ProjectionGap, 0},
		{"another line there", half + 1, nil, batch(other, half+1, n), run.ProjectionDiverged, half + 1},
		{"another line before", half + 1, nil, batch(other, half+2, n), run.ProjectionDiverged, half + 1},
		{"more lines than the batch knows of", n - 1, nil, batch(s.lines, half+1, n-2), run.ProjectionDiverged, n - 1},
		{"an earlier epoch", half, nil, func() projector.Batch {
			b := batch(s.lines, half+1,
				n)
			b.Epoch = 0
			return b
		}(), run.ProjectionStale, half},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			d := projector.At(t.TempDir())
			if r.disk > 0 {
				project(t, d, s, batch(s.lines, 1, r.disk))
			}
			before := look(t, d)
			p, err := d.Project(context.Background(), s.blobs, r.give)
			require.NoError(t, err)
			require.Equal(t, r.outcome, p.Outcome)
			require.Equal(t, run.Tail{Seq: int64(r.last), Chain: run.Chain("").Over(s.lines[:r.last])}, p.Tail)
			if r.outcome != run.ProjectionWritten {
				delete(before, layout.LockFile)
				after := look(t, d)
				delete(after, layout.LockFile)
				require.Equal(t, before, after)
			}
		})
	}
	_, err := projector.At(t.TempDir()).Project(context.Background(), s.blobs,
		projector.Batch{First: 0, Lines: s.lines})
	require.ErrorContains(t, err, "the first event of a run is 1")
}

// TestTornTail completes a piece of the next line, and moves anything else aside under a name.
func TestTornTail(t *testing.T) {
	s := whole(t)
	n := len(s.lines)
	want := look(t, written(t, s))
	for name, torn := range map[string]string{"begins the next line": s.lines[9][:20], "is the next line": s.lines[9],
		"is something else": `{"who wrote this`} {
		t.Run(name, func(t *testing.T) {
			d := projector.At(t.TempDir())
			require.NoError(t, d.Take(claim()))
			project(t, d, s, batch(s.lines, 1, 9))
			appendTo(t, d, layout.EventsFile, torn)
			project(t, d, s, batch(s.lines, 10, n))
			got := look(t, d)
			require.Equal(t, want[layout.EventsFile], got[layout.EventsFile])
			var aside []string
			for file, data := range got {
				if data == torn {
					aside = append(aside, file)
				}
			}
			if name != "is something else" {
				require.Empty(t, aside)
				return
			}
			require.Len(t, aside, 1)
			require.Contains(t, aside[0], "_orchestrator/torn/events-after-9-")
		})
	}
}

var errStop = errors.New("the machine stops here")

// TestCrashWalk stops the projection of one batch before each of its writes, looks at what readers would find, and
// projects again: in the end the directory is that of an undisturbed run, byte for byte.
func TestCrashWalk(t *testing.T) {
	s := newStory(t)
	s.start()
	s.begin(about(1), 1)
	s.fail(about(1), 1)
	s.begin(about(1), 2)
	s.end(about(1), "ok", 2)
	s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-1", AtPass: 1})
	s.fail(about(2), 1) // two failed outputs of one folder in one batch
	s.fail(about(2), 2)
	s.begin(about(2), 3)
	last := s.batches[len(s.batches)-1]
	earlier := s.batches[:len(s.batches)-1]
	want := look(t, written(t, s))

	for k := 0; ; k++ {
		d := projector.At(t.TempDir() + "/run")
		require.NoError(t, d.Take(claim()))
		project(t, d, s, earlier...)
		n := -1
		d.Disk = durable.Disk{Hook: func(durable.Step) error {
			if n++; n >= k {
				return errStop
			}
			return nil
		}}
		_, err := d.Project(context.Background(), s.blobs, last)
		if err == nil {
			require.Greater(t, k, 40, "the batch has many steps")
			break
		}
		require.ErrorIs(t, err, errStop)
		_, err = d.Meta()
		require.NoError(t, err, "step %d", k)
		_, err = records.State(d.Dir)
		require.NoError(t, err, "step %d", k)

		d.Disk = durable.Disk{}
		project(t, d, s, last)
		same(t, want, look(t, d), fmt.Sprintf("stopped before step %d", k))
	}
}

// TestInjuries hurts a directory between two batches. The next projection heals what is derived; nothing that was
// recorded is lost.
func TestInjuries(t *testing.T) {
	s := whole(t)
	cut := len(s.batches) / 2
	want := look(t, written(t, s))
	read := func(d projector.Dir, name string) string {
		raw, err := os.ReadFile(d.Path(name))
		require.NoError(t, err)
		return string(raw)
	}
	rows := []struct {
		name string
		hurt func(t *testing.T, d projector.Dir, old map[string]string)
	}{
		{"nothing", func(*testing.T, projector.Dir, map[string]string) {}},
		{"meta.json is missing", func(t *testing.T, d projector.Dir, _ map[string]string) {
			remove(t, d,
				layout.MetaFile)
		}},
		{"meta.json is garbage", func(t *testing.T, d projector.Dir, _ map[string]string) {
			write(t, d, layout.MetaFile,
				`{"version":`)
		}},
		{"meta.json is of another shape", func(t *testing.T, d projector.Dir, _ map[string]string) {
			write(t, d,
				layout.MetaFile, `{"events":7}`)
		}},
		{"meta.json is older", func(t *testing.T, d projector.Dir, old map[string]string) {
			write(t, d, layout.MetaFile, old[layout.MetaFile])
		}},
		{"state.json is missing", func(t *testing.T, d projector.Dir, _ map[string]string) {
			remove(t, d,
				layout.StateFile)
		}},
		{"state.json is garbage", func(t *testing.T, d projector.Dir, _ map[string]string) {
			write(t, d,
				layout.StateFile, "x")
		}},
		{"state.json lacks its maps", func(t *testing.T, d projector.Dir, _ map[string]string) {
			write(t, d, layout.StateFile, `{"schemaVersion":3,"passRecords":null,"lastSeq":99}`)
		}},
		{"state.json is older", func(t *testing.T, d projector.Dir, old map[string]string) {
			write(t, d, layout.StateFile, old[layout.StateFile])
		}},
		{"both are missing", func(t *testing.T, d projector.Dir, _ map[string]string) {
			remove(t, d, layout.MetaFile)
			remove(t, d, layout.StateFile)
		}},
		{"artifact and state.json are missing", func(t *testing.T, d projector.Dir, _ map[string]string) {
			remove(t, d, "artifact.html")
			remove(t, d, layout.StateFile)
		}},
		{"everything derived is missing", func(t *testing.T, d projector.Dir, _ map[string]string) {
			require.NoError(t, os.RemoveAll(d.Path("_orchestrator")))
			remove(t, d, "artifact.html")
		}},
		{"a log is shorter", func(t *testing.T, d projector.Dir, _ map[string]string) {
			text := read(d, layout.TextLog)
			write(t, d, layout.TextLog, text[:len(text)/2])
		}},
		{"leftovers of a crash", func(t *testing.T, d projector.Dir, _ map[string]string) {
			write(t, d, layout.MetaFile+".tmp.abc", "{")
			write(t, d, layout.StateFile+".tmp.abc", "{")
		}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			d := projector.At(t.TempDir() + "/run")
			require.NoError(t, d.Take(claim()))
			project(t, d, s, s.batches[:cut-1]...)
			old := look(t, d)
			project(t, d, s, s.batches[cut-1])
			r.hurt(t, d, old)
			project(t, d, s, s.batches[cut:]...)
			same(t, want, look(t, d), r.name)
		})
	}
}

// TestShorterStreamIsAGap: history has what is missing, and the directory is whole again after a rebuild.
func TestShorterStreamIsAGap(t *testing.T) {
	s := whole(t)
	want := look(t, written(t, s))
	for name, keep := range map[string]int{"shorter": 7, "empty": 0} {
		t.Run(name, func(t *testing.T) {
			d := written(t, s)
			text := ""
			for _, l := range s.lines[:keep] {
				text += l + "\n"
			}
			write(t, d, layout.EventsFile, text)
			p, err := d.Project(context.Background(), s.blobs, batch(s.lines, len(s.lines), len(s.lines)))
			require.NoError(t, err)
			require.Equal(t, run.ProjectionGap, p.Outcome)
			require.Equal(t, int64(keep), p.Tail.Seq)

			tail, err := d.Rebuild(context.Background(), s.blobs, projector.Source{Claim: claim(), Batches: s.batches})
			require.NoError(t, err)
			require.Equal(t, int64(len(s.lines)), tail.Seq)
			same(t, want, look(t, d), name)
		})
	}
}

// TestForeignBytesAfterLogAhead: a writer died between a log and meta.json, and another program left half a
// line behind it. It is moved aside, and the log is as it would be without it.
func TestForeignBytesAfterLogAhead(t *testing.T) {
	s := whole(t)
	const piece = `{"who wrote this`
	for _, cut := range []int{2, len(s.batches) / 2, len(s.batches) - 2} {
		d := projector.At(t.TempDir() + "/run")
		require.NoError(t, d.Take(claim()))
		project(t, d, s, s.batches[:cut-1]...)
		old := look(t, d)
		project(t, d, s, s.batches[cut-1])
		write(t, d, layout.MetaFile, old[layout.MetaFile])
		write(t, d, layout.StateFile, old[layout.StateFile])
		appendTo(t, d, layout.TextLog, piece)
		project(t, d, s, s.batches[cut-1:]...)
		now := look(t, d)
		require.Equal(t, look(t, written(t, s))[layout.TextLog], now[layout.TextLog])
		var aside []string
		for name, text := range now {
			if strings.HasPrefix(name, "_orchestrator/torn/orchestrator-after-") && strings.HasSuffix(text, piece) {
				aside = append(aside, name)
			}
		}
		require.Len(t, aside, 1, "the piece is kept")
		require.Empty(t, check(t, d).Issues)
	}
}

// TestExchangedStreamIsDetected: lines of another length under meta.json are noticed though there are enough bytes.
func TestExchangedStreamIsDetected(t *testing.T) {
	s := whole(t)
	n := len(s.lines) - 1
	for name, text := range map[string]string{
		"other lines":   strings.Repeat(`{"kind":"someone.else"}`+"\n", 4000),
		"one long line": strings.Repeat("x", 1<<20), "torn at once": "{",
	} {
		for _, first := range []int{2, n - 3, n + 1} {
			d := projector.At(t.TempDir())
			project(t, d, s, batch(s.lines, 1, n)) // all but the end: behind that nothing is written in any case
			write(t, d, layout.EventsFile, text)
			b := projector.Batch{Epoch: 1, First: int64(first), Prev: run.Chain("").Over(s.lines[:first-1]),
				Lines: []string{`{"kind":"next"}`}}
			p, err := d.Project(context.Background(), s.blobs, b)
			require.NoError(t, err)
			require.Contains(t, []run.Projection{run.ProjectionGap, run.ProjectionDiverged}, p.Outcome, name)
			require.Equal(t, text, look(t, d)[layout.EventsFile], name)
		}
	}
}

func appendTo(t *testing.T, d projector.Dir, name, text string) {
	t.Helper()
	raw, err := os.ReadFile(d.Path(name))
	require.NoError(t, err)
	write(t, d, name, string(raw)+text)
}

func write(t *testing.T, d projector.Dir, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(d.Path(name), []byte(text), 0o600))
}

func remove(t *testing.T, d projector.Dir, name string) {
	t.Helper()
	require.NoError(t, os.Remove(d.Path(name)))
}

// BenchmarkProject is one pass more in a run of that many: what it costs and how much it writes.
func BenchmarkProject(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("%d passes", n), func(b *testing.B) {
			s := newStory(b)
			s.start()
			for i := 1; i <= n; i++ {
				s.pass(i)
			}
			s.send()
			d := projector.At(b.TempDir())
			project(b, d, s, batch(s.lines, 1, len(s.lines)))
			from := len(s.batches)
			for i := range b.N {
				s.pass(n + i + 1)
			}
			s.send()
			b.ResetTimer()
			project(b, d, s, s.batches[from:]...)
			b.StopTimer()
			state, err := os.Stat(d.Path(layout.StateFile))
			require.NoError(b, err)
			meta, err := os.Stat(d.Path(layout.MetaFile))
			require.NoError(b, err)
			b.ReportMetric(float64(state.Size()+meta.Size()), "state+meta-bytes/op")
		})
	}
}

// same compares two directories file by file.
func same(t testing.TB, want, got map[string]string, when string) {
	t.Helper()
	for name, text := range want {
		have, ok := got[name]
		require.True(t, ok, "%s: %s is missing", when, name)
		if have != text {
			require.Equal(t, strings.Split(text, "\n"), strings.Split(have, "\n"), "%s: %s", when, name)
		}
	}
	for name := range got {
		require.Contains(t, slices.Collect(maps.Keys(want)), name, when)
	}
}
