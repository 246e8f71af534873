package rundir_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// deep checks a directory with its store.
func deep(t *testing.T, d rundir.Dir, store rundir.Blobs) []string {
	t.Helper()
	var out []string
	for _, i := range checkWith(t, d, rundir.CheckOptions{Deep: store}).Issues {
		out = append(out, string(i.Code)+": "+i.Message)
	}
	return out
}

// listedTrees is a store whose trees list files, as those of a workspace do.
type listedTrees struct {
	fakeBlobs
	entries string
}

func (l listedTrees) Manifest(ctx context.Context, tree string) ([]byte, error) {
	_, err := l.Get(ctx, tree)
	return fmt.Appendf(nil, `{"version":1,"tree":"%s","entries":[%s]}`, tree, l.entries), err
}

// TestCheckDeepReadsTrees: the files of each tree, once, and the trees that turns share.
func TestCheckDeepReadsTrees(t *testing.T) {
	s := newStory(t)
	s.worksOn("")
	s.turn(1, "ok", "tree 1")
	s.turn(2, "ok", "")
	d := written(t, s)
	there, lost := s.blobs.keep("a file").Digest, digestOf("a lost file")
	store := listedTrees{s.blobs, fmt.Sprintf(`{"path":"folder"},{"path":"a.txt","sha256":"%s"}`, there)}
	require.Empty(t, deep(t, d, store))
	store.entries += fmt.Sprintf(`,"another form",{"path":"b.txt","sha256":"%s"},{"path":"c.txt","sha256":"%[1]s"}`, lost)
	require.Equal(t, []string{fmt.Sprintf("store_damaged: blob %.12s of b.txt in snapshots/turn-0/manifest.json is not "+
		"in the store", lost)}, deep(t, d, store))

	tree := digestOf("tree 1")
	delete(s.blobs, tree)
	require.Equal(t, []string{fmt.Sprintf("store_damaged: tree %.12s of snapshots/turn-1/manifest.json is not in the "+
		"store", tree)}, deep(t, d, s.blobs))
	store.entries = `{`
	_, err := rundir.Check(t.Context(), d, rundir.CheckOptions{Deep: store})
	require.ErrorContains(t, err, fmt.Sprintf("tree %.12s: ", digestOf("tree 0")))
	failure := errors.New("the store does not answer")
	_, err = rundir.Check(t.Context(), d, rundir.CheckOptions{Deep: brokenBlobs{s.blobs, digestOf("prompt"), failure}})
	require.ErrorIs(t, err, failure)
}

// TestCheckDeepComparesTheJournal with the segments if meta.json can be read, and looks for checkpoints up to the last
// event in it.
func TestCheckDeepComparesTheJournal(t *testing.T) {
	s := newStory(t)
	s.twoPasses()
	d := written(t, s)
	n := len(s.lines)
	head := seal(t, s, d, n)
	require.Empty(t, deep(t, d, s.blobs))
	require.Empty(t, deep(t, d, struct{ rundir.Blobs }{s.blobs}), "a store without names")

	healthy := look(t, d)
	writeJournal(t, d, changed(s.lines, n-1))
	seen(0)(t, d)
	require.Contains(t, deep(t, d, s.blobs), fmt.Sprintf(
		"journal_damaged: event %d of events.jsonl is not the one in the store", n-1))
	write(t, d, rundir.EventsFile, healthy[rundir.EventsFile])
	write(t, d, rundir.MetaFile, healthy[rundir.MetaFile])

	for name := range s.blobs {
		if strings.HasSuffix(name, ".cp-S1") || name == head {
			delete(s.blobs, name)
		}
	}
	require.Equal(t, []string{"store_damaged: the journal is not in the store",
		fmt.Sprintf("store_damaged: checkpoint cp-S1 of event %d is not in the store", n)}, deep(t, d, s.blobs))
	s.pass(4)
	writeJournal(t, d, s.lines)
	for _, found := range deep(t, d, s.blobs) {
		require.NotContains(t, found, "cp-S2", "it may not be stored yet")
	}
}

// TestCheckReadsTheTreeOfATurn: a changed line of a manifest is found by a program that can read it.
func TestCheckReadsTheTreeOfATurn(t *testing.T) {
	d, blobs := directoryOf(t, "with turns")
	healthy := look(t, d)
	const name = "snapshots/turn-1/manifest.json"
	write(t, d, name, strings.Replace(healthy[name], `"tree 1"`, `"tree 9"`, 1))
	require.Empty(t, check(t, d).Issues)
	r := checkWith(t, d, rundir.CheckOptions{ReadTree: readTree})
	require.Len(t, r.Issues, 1)
	require.Equal(t, rundir.FileDiffers, r.Issues[0].Code)
	require.Equal(t, name+" was changed: "+disk.ErrDamaged.Error(), r.Issues[0].Message)
	repair(t, d, blobs)
	require.Equal(t, healthy[name], look(t, d)[name])

	write(t, d, name, strings.Replace(healthy[name], digestOf("tree 1"), strings.Repeat("0", 64), 1))
	require.Equal(t, fmt.Sprintf("%s is not of tree %.12s", name, digestOf("tree 1")),
		check(t, d).Issues[0].Message)
}

// TestStatusOfLinesBehindMeta: a run of which meta.json has seen a part, or nothing, has begun.
func TestStatusOfLinesBehindMeta(t *testing.T) {
	s := newStory(t)
	s.twoPasses()
	s.send()
	half := len(s.lines) / 2
	d := claimed(t)
	project(t, d, s, batch(s.lines, 1, half))
	writeJournal(t, d, s.lines[:2*half])
	r := check(t, d)
	require.Equal(t, run.Running, r.EffectiveStatus.Status)
	require.Equal(t, fmt.Sprintf("meta.json lacks the last %d of %d events", half, 2*half), r.Issues[0].Message)

	setKey(t, d, "events", `{"seq":0,"chain":"","size":0}`)
	require.NotEqual(t, run.Pending, check(t, d).EffectiveStatus.Status)
}

// TestEditBehindMetaIsFound: an artifact that neither the lines in meta.json nor later ones explain was edited. One
// later line is enough.
func TestEditBehindMetaIsFound(t *testing.T) {
	s := newStory(t)
	s.twoPasses()
	s.begin(about(3), 1)
	s.end(about(3), "ok", 1)
	s.send()
	at := 0
	for i, line := range s.lines {
		if strings.Contains(line, `"kind":"artifact.updated"`) {
			at = i
		}
	}
	d := claimed(t)
	project(t, d, s, batch(s.lines, 1, at))
	writeJournal(t, d, s.lines[:at+1])
	write(t, d, "artifact.html", string(s.blobs[s.state.Artifact.Digest]))
	require.Equal(t, []rundir.Code{rundir.FileDiffers}, codesOf(check(t, d)))
	write(t, d, "artifact.html", "mine")
	r := check(t, d)
	require.Equal(t, []rundir.Code{rundir.FileDiffers, rundir.ArtifactEdited}, codesOf(r))
	require.Equal(t, fmt.Sprintf("artifact.html is not what the run recorded: its sha-256 is %.12s, not %.12s",
		digestOf("mine"), s.state.Artifact.Digest), r.Issues[1].Message)
}

// TestSizesOfTheJournalAreReported: events and bytes in meta.json and in the file, and bytes after its last line.
func TestSizesOfTheJournalAreReported(t *testing.T) {
	s := newStory(t)
	s.twoPasses()
	d := written(t, s)
	size := func(lines []string) int { return len(strings.Join(lines, "\n")) + 1 }
	n := len(s.lines)
	at := fmt.Sprintf("meta.json has seen %d events in %d bytes, and events.jsonl ", n, size(s.lines))
	writeJournal(t, d, s.lines[:n-2])
	require.Equal(t, at+fmt.Sprintf("has %d in %d bytes", n-2, size(s.lines[:n-2])),
		check(t, d).Issues[0].Message)
	appendTo(t, d, rundir.EventsFile, "12345678")
	issues := check(t, d).Issues
	require.Equal(t, at+fmt.Sprintf("has %d in %d bytes", n-2, size(s.lines[:n-2])), issues[0].Message)
	require.Equal(t, "8 bytes behind the last line of events.jsonl are not a line", issues[len(issues)-1].Message)
}
