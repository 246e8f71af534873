package rundir_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// blobs is a store in memory.
type blobs map[string][]byte

func (b blobs) Get(_ context.Context, digest string) ([]byte, error) {
	if raw, ok := b[digest]; ok {
		return raw, nil
	}
	return nil, fs.ErrNotExist
}

func (b blobs) put(raw []byte) string {
	digest := disk.Digest(raw)
	b[digest] = raw
	return digest
}

type awayStore struct{}

var errAway = errors.New("the store is away")

func (awayStore) Get(context.Context, string) ([]byte, error) { return nil, errAway }

// completed is the directory of a run with an artifact, and its store.
type completed struct {
	d     rundir.Dir
	store blobs
	want  rundir.Result
	lines []string
}

// finish writes the directory of a run whose events are followed by others, of which the store has a number.
func finish(t *testing.T, stored int, rows ...[2]string) completed {
	t.Helper()
	c := completed{store: blobs{}}
	page := c.store.put([]byte("page\n"))
	events := journalFile(t, append([][2]string{
		{"run.start", `{"run_id":"r","thread_id":"th","artifact":{"file":"out/page.html","seed":{}}}`},
		{"artifact.updated", `{"artifact":{"digest":"` + page + `","size":5}}`}}, rows...)...)
	c.lines = strings.Split(strings.TrimSuffix(events, "\n"), "\n")
	stored = min(stored, len(c.lines))
	segment := func(previous string, prev run.Chain, first, last int) string {
		raw, err := json.Marshal(rundir.Segment{Version: 1, RunID: "r", First: int64(first), Last: int64(last),
			Prev: prev, Chain: prev.Over(c.lines[first-1 : last]), Previous: previous, Lines: c.lines[first-1 : last]})
		require.NoError(t, err)
		return c.store.put(raw)
	}
	head := segment(segment("", "", 1, 1), run.Chain("").Over(c.lines[:1]), 2, stored)
	end := 3
	c.want = rundir.Result{Version: 1, RunID: "r", Seq: int64(end), Chain: run.Chain("").Over(c.lines[:end]),
		Kind: rundir.ResultArtifact, Name: "out/page.html", Digest: page, Size: 5}
	manifest, err := json.Marshal(c.want)
	require.NoError(t, err)
	c.d = put(t, map[string]string{rundir.ClaimFile: `{"run_id":"r","pipeline":"p"}`, rundir.EventsFile: events,
		rundir.MetaFile:   `{"segment_head":"` + head + `","digest":"x"}`,
		rundir.ResultFile: string(manifest), "out/page.html": "page\n"})
	return c
}

func (c completed) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(c.d.Path(name), []byte(text), 0o600))
}

var done = [2]string{"run.end", `{"status":"done"}`}

// TestResultThatAllAgreeOn returns the result if manifest, journal and store agree on it.
func TestResultThatAllAgreeOn(t *testing.T) {
	for name, c := range map[string]completed{
		"all events are stored":          finish(t, 9, done, [2]string{"delivery.completed", `{"action":"x"}`}),
		"the event of the end is stored": finish(t, 3, done, [2]string{"delivery.completed", `{"action":"x"}`}),
	} {
		got, err := c.d.Result(t.Context(), c.store)
		require.NoError(t, err, name)
		require.Equal(t, c.want, got, name)
		raw, err := c.d.ResultBytes(t.Context(), awayStore{}, got)
		require.NoError(t, err, "the directory has it")
		require.Equal(t, "page\n", string(raw))
		c.write(t, "out/page.html", "edited\n")
		raw, err = c.d.ResultBytes(t.Context(), c.store, got)
		require.NoError(t, err)
		require.Equal(t, "page\n", string(raw), "the store has it")
		_, err = c.d.ResultBytes(t.Context(), awayStore{}, got)
		require.EqualError(t, err, "out/page.html in "+c.d.Root+" is no longer the result of the run, and the store does "+
			"not have it: the store is away")
		require.NoError(t, os.Remove(c.d.Path("out/page.html")))
		raw, err = c.d.ResultBytes(t.Context(), c.store, got)
		require.NoError(t, err)
		require.Equal(t, "page\n", string(raw))
	}
}

// TestInconsistentResultIsRefused names what disagrees.
func TestInconsistentResultIsRefused(t *testing.T) {
	for name, row := range map[string]struct {
		c      completed
		change func(c completed)
		want   string
	}{
		"no manifest": {finish(t, 9, done), func(c completed) { require.NoError(t, os.Remove(c.d.Path(rundir.ResultFile))) },
			"its manifest result.json is missing"},
		"a damaged manifest": {finish(t, 9, done), func(c completed) { c.write(t, rundir.ResultFile, "{") },
			"is damaged"},
		"another manifest": {finish(t, 9, done), func(c completed) {
			c.write(t, rundir.ResultFile, `{"run_id":"r","sha256":"0123456789abcdef"}`)
		}, "its manifest result.json differs from the journal (0123456789ab, and the journal has " +
			disk.Digest([]byte("page\n"))[:12] + ")"},
		"another run": {finish(t, 9, done), func(c completed) { c.write(t, rundir.ClaimFile, `{"run_id":"th"}`) },
			"its events are those of run r"},
		"the end is not stored": {finish(t, 2, done), nil,
			"the store holds events 1 to 2 of its journal, and the run ended with event 3"},
		"the first event is another one": {finish(t, 9, done), func(c completed) {
			text, err := os.ReadFile(c.d.Path(rundir.EventsFile))
			require.NoError(t, err)
			c.write(t, rundir.EventsFile, strings.Replace(string(text), `"thread_id":"th"`, `"thread_id":"TH"`, 1))
		}, "event 1 of events.jsonl is not the one in the store"},
		"no segments": {finish(t, 9, done), func(c completed) { clear(c.store) },
			"the store does not confirm its journal: segment "},
		"a damaged segment": {finish(t, 9, done), func(c completed) {
			for digest := range c.store {
				c.store[digest] = []byte("{")
			}
		}, "the store does not confirm its journal: segment "},
		"no meta.json": {finish(t, 9, done), func(c completed) { require.NoError(t, os.Remove(c.d.Path(rundir.MetaFile))) },
			"meta.json: no such file or directory"},
	} {
		if row.change != nil {
			row.change(row.c)
		}
		_, err := row.c.d.Result(t.Context(), row.c.store)
		var refused *rundir.ResultError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, row.c.d.Root, refused.Dir)
		require.Contains(t, refused.Why, row.want, name)
		require.EqualError(t, err, "the result in "+refused.Dir+" is not taken: "+refused.Why+". Rebuild the directory with "+
			"`starter rebuild "+refused.RunID+" --output-dir OTHER`, and promote OTHER", name)
		require.Equal(t, map[bool]string{false: "r", true: "th"}[name == "another run"], refused.RunID)
	}
}

// TestResultOfRunsWithoutOne refuses runs that are not completed, and passes on what cannot be read.
func TestResultOfRunsWithoutOne(t *testing.T) {
	paused := finish(t, 9, [2]string{"run.paused", `{"reason":"operator"}`})
	_, err := paused.d.Result(t.Context(), paused.store)
	var conflict *run.ConflictError
	require.ErrorAs(t, err, &conflict)

	whole := finish(t, 9, done)
	_, err = whole.d.Result(t.Context(), awayStore{})
	require.ErrorIs(t, err, errAway)
	require.False(t, errors.As(err, new(*rundir.ResultError)), "a store that is away is not a disagreement")
	for _, file := range []string{rundir.ClaimFile, rundir.EventsFile, rundir.ResultFile} {
		c := finish(t, 9, done)
		require.NoError(t, os.Remove(c.d.Path(file)))
		require.NoError(t, os.Mkdir(c.d.Path(file), 0o700))
		_, err = c.d.Result(t.Context(), c.store)
		require.Error(t, err, file)
		require.False(t, errors.As(err, new(*rundir.ResultError)), file)
	}

	nothing := put(t, map[string]string{rundir.ClaimFile: `{"run_id":"r"}`,
		rundir.EventsFile: journalFile(t, [2]string{"run.start", `{"run_id":"r"}`}, done)})
	_, err = nothing.Result(t.Context(), blobs{})
	require.EqualError(t, err, (&rundir.ResultError{Dir: nothing.Root, RunID: "r", Why: "its events name none"}).Error())
}

func TestPromotionsOfResult(t *testing.T) {
	events := journalFile(t, [2]string{"delivery.completed", `{"action":"promote","delivered":true,"target":"a"}`},
		[2]string{"delivery.completed", `[]`}, [2]string{"delivery.completed", `{"action":"promote","target":"b"}`})
	d := put(t, map[string]string{rundir.PromotionsFile: events + "no event\n"})
	got, err := d.Promotions()
	require.NoError(t, err)
	require.Equal(t, []run.DeliveryCompleted{{Action: "promote", Delivered: true, Target: "a"},
		{Action: "promote", Target: "b"}}, got)
	got, err = put(t, nil).Promotions()
	require.NoError(t, err)
	require.Empty(t, got)
	_, err = put(t, map[string]string{rundir.PromotionsFile + "/x": ""}).Promotions()
	require.Error(t, err)
}
