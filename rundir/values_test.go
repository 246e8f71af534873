package rundir_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// put writes files into a directory.
func put(t *testing.T, files map[string]string) rundir.Dir {
	t.Helper()
	d := rundir.At(t.TempDir())
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(d.Path(name)), 0o755))
		require.NoError(t, os.WriteFile(d.Path(name), []byte(text), 0o600))
	}
	return d
}

// stream writes events as lines.
func stream(t *testing.T, events ...any) string {
	t.Helper()
	kinds := map[string]run.Kind{"run.RunStart": run.KindRunStart, "run.PassAttempt": run.KindPassAttempt,
		"run.PassEnd": run.KindPassEnd, "run.PassStart": run.KindPassStart, "run.WorkspaceUpdated": run.KindWorkspaceUpdated,
		"run.RunReverted": run.KindRunReverted, "run.JournalDamage": run.KindJournalDamaged}
	var b strings.Builder
	for i, payload := range events {
		raw, err := run.Payload(payload)
		require.NoError(t, err)
		e := run.Event{Seq: int64(i + 1), TS: fmt.Sprintf("2026-01-02T03:04:%02d.000Z", i+1),
			Kind:    kinds[fmt.Sprintf("%T", payload)],
			Payload: raw}
		line, err := e.Line()
		require.NoError(t, err)
		b.WriteString(line + "\n")
	}
	return b.String()
}

// TestVersionsOfWorkspace lists the trees of a run with turns, edits and a revert.
func TestVersionsOfWorkspace(t *testing.T) {
	tree := func(name string) run.Blob { return run.Blob{Digest: name, Raw: "raw"} }
	ptr := func(b run.Blob) *run.Blob { return &b }
	turn := run.Pass{Step: "fix", Role: "coder", Round: 2, Gives: "changes"}
	member := turn
	member.Member = "b"
	cost := run.Spend{USD: 0.5, Known: run.CostUnknown}
	carried := tree("t1")
	d := put(t, map[string]string{rundir.EventsFile: stream(t,
		run.RunStart{RunID: "r", Workspace: &run.Workspace{Tree: tree("t0"), Base: "base"}, Wording: run.WordingStages},
		run.PassAttempt{Pass: turn, Spend: &cost},
		run.PassEnd{Pass: turn, Call: "c1", Outcome: run.CategoryOK, Spend: run.Spend{USD: 1}, Tree: ptr(tree("t1"))},
		run.WorkspaceUpdated{Step: "fix", Call: "c1", Tree: tree("t1"), Changed: 3},
		run.PassEnd{Pass: run.Pass{Step: "look", Gives: "report"}, Call: "c2", Outcome: run.CategoryOK, Tree: ptr(tree("x"))},
		run.WorkspaceUpdated{Cause: "edited", Tree: tree("t2"), Changed: 1},
		run.PassEnd{Pass: member, Call: "c3", Outcome: run.CategoryAgentTimeout, Spend: run.Spend{USD: 2}},
		run.RunReverted{To: 4, Cause: "revert", State: &run.State{Tree: &carried}},
		run.PassEnd{Pass: turn, Call: "c4", Outcome: run.CategoryOK, Tree: ptr(tree("t3"))},
	)})
	got, err := d.Versions()
	require.NoError(t, err)
	at := func(seq int64, v rundir.Version) rundir.Version {
		v.Seq, v.TS = seq, fmt.Sprintf("2026-01-02T03:04:%02d.000Z", seq)
		return v
	}
	require.Equal(t, []rundir.Version{
		at(1, rundir.Version{Cause: rundir.FromStart, Tree: "t0"}),
		at(3, rundir.Version{Cause: rundir.FromTurn, Turn: 1, Step: "fix", Round: 2, Role: "coder", Call: "c1",
			Outcome: run.CategoryOK, USD: 1.5, Unknown: 1, Changed: 3, Tree: "t1", Before: "t0"}),
		at(6, rundir.Version{Cause: rundir.FromEdit, Turn: 1, Changed: 1, Tree: "t2", Before: "t1", Abandoned: true}),
		at(7, rundir.Version{Cause: rundir.FromTurn, Turn: 2, Step: "fix", Round: 2, Role: "b", Call: "c3",
			Outcome: run.CategoryAgentTimeout.In(run.WordingStages), USD: 2, Tree: "t2", Before: "t2", Abandoned: true}),
		at(9, rundir.Version{Cause: rundir.FromTurn, Turn: 3, Step: "fix", Round: 2, Role: "coder", Call: "c4",
			Outcome: run.CategoryOK, Tree: "t3", Before: "t1"}),
	}, got)
	none, err := put(t, map[string]string{rundir.EventsFile: stream(t, run.RunStart{RunID: "r"},
		run.PassEnd{Pass: turn, Tree: ptr(tree("t"))}, run.WorkspaceUpdated{Tree: tree("t")})}).Versions()
	require.NoError(t, err)
	require.Empty(t, none, "a run without a workspace")
}

// TestPartsOfStream reads the end, the last lines and the first event of a journal.
func TestPartsOfStream(t *testing.T) {
	events := stream(t, run.PassStart{Call: "a"}, run.RunStart{RunID: "r"}, run.RunStart{RunID: "later"})
	d := put(t, map[string]string{rundir.EventsFile: events + "[]\n{torn"})
	all, damaged, err := d.Events()
	require.NoError(t, err)
	require.Equal(t, 1, damaged)
	require.Len(t, all, 3)
	start, err := d.First()
	require.NoError(t, err)
	require.Equal(t, "r", start.RunID)
	var lines []string
	for line := range strings.Lines(events) {
		lines = append(lines, strings.TrimSuffix(line, "\n"))
	}
	tail, err := d.Tail()
	require.NoError(t, err)
	require.Equal(t, run.Tail{Seq: 4, Chain: run.Chain("").Over(append(lines, "[]"))}, tail)
	last := int64(len(lines[2]) + len("\n[]\n{torn"))
	for bytes, want := range map[int64]int{1 << 20: 3, last: 0, last + 1: 1, last + 2: 1, int64(len(events)): 2} {
		recent, err := d.Recent(bytes)
		require.NoError(t, err)
		require.Len(t, recent, want, "%d bytes", bytes)
	}
	for _, read := range []func(rundir.Dir) error{
		func(d rundir.Dir) error { _, _, err := d.Events(); return err },
		func(d rundir.Dir) error { _, err := d.First(); return err },
		func(d rundir.Dir) error { _, err := d.Tail(); return err },
		func(d rundir.Dir) error { _, err := d.Recent(9); return err },
		func(d rundir.Dir) error { _, err := d.Versions(); return err },
	} {
		require.Error(t, read(put(t, map[string]string{rundir.EventsFile + "/x": ""})), "no file")
	}
	empty := put(t, nil)
	recent, err := empty.Recent(10)
	require.NoError(t, err)
	require.Empty(t, recent)
	tail, err = empty.Tail()
	require.NoError(t, err)
	require.Zero(t, tail)
	_, err = empty.First()
	require.EqualError(t, err, empty.Path(rundir.EventsFile)+" has no run.start")
}

func TestClaimsAndOwners(t *testing.T) {
	for text, want := range map[string]string{
		"": "no run here", `{"run_id":7}`: "is not one of Passbook's", `{"run_id":"../x"}`: "is not one of Passbook's",
		`{"run_id":""}`: "is not one of Passbook's", `{`: "unexpected end of JSON input", `{"run_id":"r","pipeline":"p"}`: "",
	} {
		files := map[string]string{rundir.ClaimFile: text}
		if text == "" {
			files = nil
		}
		c, err := put(t, files).Claim()
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, run.Claim{RunID: "r", Pipeline: "p"}, c)
			continue
		}
		require.ErrorContains(t, err, want, text)
		require.Equal(t, text != "{", errors.Is(err, rundir.ErrNoRun), text)
	}
	claim := run.Claim{RunID: "r", Host: "h1", Cluster: "c1", Address: "a1"}
	moved := run.Claim{RunID: "r", Host: "h2", Cluster: "c2", Embedded: true, Address: "a2"}
	for owner, want := range map[string]run.Claim{
		"":  claim,
		"{": claim,
		`{"run_id":"r","host":"h2","cluster":"c2","embedded":true,"address":"a2","epoch":2}`: moved,
		`{"run_id":"x","host":"h2","cluster":"c2","embedded":true,"address":"a2","epoch":2}`: claim,
		`{"run_id":"r","host":"h2"}`:    claim,
		`{"run_id":"r","address":"a2"}`: claim,
	} {
		files := map[string]string{rundir.OwnerFile: owner}
		if owner == "" {
			files = nil
		}
		d := put(t, files)
		require.Equal(t, want, d.CurrentClaim(claim), owner)
		o, err := d.Owner()
		if owner == "{" {
			var unreadable *rundir.UnreadableError
			require.ErrorAs(t, err, &unreadable)
			require.Equal(t, d.Path(rundir.OwnerFile), unreadable.File)
			require.Regexp(t, "^mv "+d.Path(rundir.OwnerFile)+" ", unreadable.Next)
			require.Zero(t, o)
		} else {
			require.NoError(t, err)
		}
	}
	inner := &fs.PathError{Op: "open", Path: "f", Err: fs.ErrPermission}
	require.EqualError(t, &rundir.UnreadableError{File: "f", Err: inner, Next: "mv f g"}, "read f: permission denied; "+
		"nothing was written. The run continues once the file can be read: restore it, or type: mv f g")
	require.EqualError(t, &rundir.AccessError{Dir: "d", Err: inner},
		"open run directory d: permission denied; make it readable, or name another directory")
	require.EqualError(t, &rundir.AccessError{Dir: "d", Owner: "ann", Err: inner},
		"open run directory d: permission denied; "+
			"it belongs to user ann: run the command as ann, or name another directory")
	require.ErrorIs(t, &rundir.AccessError{Err: inner}, fs.ErrPermission)
	require.EqualError(t, &rundir.ClaimedError{Dir: "d", Holder: run.Claim{RunID: "r", Pipeline: "p", CreatedAt: "then"}},
		"d belongs to run r (p, started then); nothing was written. Name another directory")
}

func TestRowsOfLogs(t *testing.T) {
	d := put(t, map[string]string{"log": `{"type":"verifier-depth","pass":3,"seq":9,"a":4,"b":null,"c":"x"}` + "\n[]\n" +
		`{"type":"pa-score","score":2.5,"a":4}` + "\n{torn"})
	rows, skipped, err := rundir.Rows[rundir.QualityRow](d, "log")
	require.NoError(t, err)
	require.Equal(t, 2, skipped)
	require.Equal(t, "verifier-depth", rows[0].Type)
	require.Equal(t, 3, rows[0].Pass)
	require.Equal(t, map[string]int{"a": 4}, rows[0].Counts)
	require.Equal(t, "pa-score", rows[1].Type)
	require.InDelta(t, 2.5, *rows[1].Score, 0)
	require.Nil(t, rows[1].Counts)
	whole, skipped, err := rundir.Rows[rundir.CostRow](put(t, map[string]string{"log": `{"costUsd":2}` + "\n"}), "log")
	require.NoError(t, err)
	require.Equal(t, []rundir.CostRow{{USD: 2}}, whole)
	require.Zero(t, skipped)
	traces, skipped := rundir.ReadTraces([]byte(`{"call":"c"}` + "\n" +
		`{"call":"c","turn":4,"tool":"sh"}` + "\n" + `{"call":"d","turn":5}` + "\n{}\n{\n{torn"))
	require.Equal(t, 3, skipped)
	require.Equal(t, []rundir.TraceRow{{Call: "c"}, {Call: "d", Turn: 5}}, traces)
	_, _, err = rundir.Rows[int](d, "none")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestDecisionsInFiles(t *testing.T) {
	d := put(t, map[string]string{"phase_handoff_decisions/b.json": `{"handoff_id":"2","action":" HALT "}`,
		"phase_handoff_decisions/a.json": `{"handoff_id":"1","action":"continue","decided_at":"2026-01-02T03:04:05.5Z"}`,
		"phase_handoff_decisions/c.json": `{`, "phase_handoff_decisions/d.txt": `{}`, "phase_handoff_decisions/e.json/x": ``})
	answers, err := d.Decisions()
	require.NoError(t, err)
	require.Len(t, answers, 2)
	require.Equal(t, "1", answers[0].HandoffID)
	require.Equal(t, "2", answers[1].HandoffID)
	require.False(t, answers[0].Halts())
	require.True(t, answers[1].Halts())
	require.Equal(t, time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC), answers[0].At())
	require.Equal(t, 3, rundir.Decision{DecidedAt: "2026-01-02T03:04:05+01:00"}.At().In(time.FixedZone("", 3600)).Hour())
	require.True(t, rundir.Decision{DecidedAt: "soon"}.At().IsZero())
	answers, err = put(t, nil).Decisions()
	require.NoError(t, err)
	require.Empty(t, answers)
}

// TestFilesWithRecords visits what can name blobs, and nothing else.
func TestFilesWithRecords(t *testing.T) {
	d := put(t, map[string]string{"a.json": "1", "b.jsonl": "2", "c.txt": "3", rundir.TornDir + "/x": "4",
		rundir.WorkspaceDir + "/w.json": "5", rundir.InputsDir + "/i.json": "6", rundir.ArchivesDir + "/run-1/z.json": "7",
		rundir.ArchivesDir + "/other/z.json": "8", rundir.ArchivesDir + "/run-2": "9", "deep/er/d.json": "10"})
	var got []string
	require.NoError(t, d.Records(func(name string, r io.Reader) error {
		text, err := io.ReadAll(r)
		got = append(got, string(text))
		require.True(t, strings.HasPrefix(name, d.Root))
		return err
	}))
	slices.Sort(got)
	require.Equal(t, []string{"1", "10", "2", "4"}, got)
	stop := errors.New("stop")
	require.ErrorIs(t, d.Records(func(string, io.Reader) error { return stop }), stop)
	archived, err := rundir.Dir{Folder: disk.Folder{Root: d.Root, Trust: true}}.Archived()
	require.NoError(t, err)
	require.Equal(t, []rundir.Dir{{Folder: disk.Folder{Root: d.Path(rundir.ArchivesDir + "/run-1"), Trust: true}}}, archived)
	archived, err = put(t, nil).Archived()
	require.NoError(t, err)
	require.Empty(t, archived)

	shots := run.Screenshots{Dir: "audit/cycle-1", Count: 2}
	folder := rundir.ShotsDir(shots)
	pictures,
		err := put(t, map[string]string{folder + "/" + rundir.ShotsFile: `[{"name":"../x/a.png","size":3}]`}).Pictures(shots)
	require.NoError(t, err)
	require.Equal(t, []run.Shot{{Name: folder + "/a.png", Size: 3}}, pictures)
	pictures, err = d.Pictures(run.Screenshots{Dir: "audit/cycle-1"})
	require.NoError(t, err)
	require.Empty(t, pictures)
	_, err = d.Pictures(shots)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestSeedOfArtifact looks for the first content where it can be.
func TestSeedOfArtifact(t *testing.T) {
	seed, other := "seed\n", "other\n"
	digest := disk.Digest([]byte(seed))
	pass := run.Pass{Step: "001", Number: 1, Role: "w"}
	events := func(start *run.ArtifactRef) string {
		return stream(t, run.RunStart{RunID: "r", Artifact: start}, run.PassStart{Pass: run.Pass{Step: "000", Number: 9},
			Before: "x"},
			run.PassStart{Pass: pass, Before: digest})
	}
	ref := &run.ArtifactRef{File: "page.html", Seed: run.Blob{Digest: digest}}
	inputs := `{"version":1,"files":[{"path":"b.html","digest":"d"},{"path":"a.html"}]}`
	for name, row := range map[string]struct {
		files map[string]string
		want  rundir.Artifact
		err   error
	}{
		"among the inputs": {map[string]string{rundir.InputsFile: inputs, rundir.InputsDir + "/b.html": other,
			rundir.InputsDir + "/a.html": seed, "page.html": other}, rundir.Artifact{Seed: []byte(seed), Now: []byte(other)},
			nil},
		"a backup": {map[string]string{rundir.BackupFile(pass, "page.html"): seed, "page.html": other},
			rundir.Artifact{Seed: []byte(seed), Now: []byte(other)}, nil},
		"a changed backup": {map[string]string{rundir.BackupFile(pass, "page.html"): other, "page.html": other},
			rundir.Artifact{Now: []byte(other)}, fs.ErrNotExist},
		"unchanged": {map[string]string{"page.html": seed}, rundir.Artifact{Seed: []byte(seed), Now: []byte(seed)}, nil},
		"absent": {map[string]string{rundir.InputsFile: inputs, rundir.InputsDir + "/a.html": seed},
			rundir.Artifact{Seed: []byte(seed), Absent: true}, nil},
	} {
		row.files[rundir.EventsFile] = events(ref)
		got, err := put(t, row.files).Artifact()
		require.ErrorIs(t, err, row.err, name)
		row.want.File = "page.html"
		require.Equal(t, row.want, got, name)
	}
	_, err := put(t, map[string]string{rundir.EventsFile: events(nil)}).Artifact()
	require.ErrorIs(t, err, rundir.ErrNoArtifact)
	got, err := put(t, map[string]string{rundir.EventsFile: events(&run.ArtifactRef{File: "page.html"}),
		"page.html": other}).Artifact()
	require.NoError(t, err)
	require.Equal(t, rundir.Artifact{File: "page.html", Now: []byte(other)}, got)
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, rundir.Inputs{Files: []rundir.InputFile{{Path: "a",
		Digest: "1"},
		{Path: "b", Digest: "2"}}}.Digests())
}

func TestResultsOfRuns(t *testing.T) {
	artifact, tree := &run.Blob{Digest: "a", Size: 4, Raw: "r"}, &run.Blob{Digest: "t", Size: 9}
	for name, row := range map[string]struct {
		state run.State
		want  rundir.Result
		ok    bool
	}{
		"not done": {run.State{Status: run.Halted, Artifact: artifact}, rundir.Result{}, false},
		"nothing":  {run.State{Status: run.Done}, rundir.Result{}, false},
		"an artifact": {run.State{Status: run.Done, Artifact: artifact, Tree: tree},
			rundir.Result{Kind: rundir.ResultArtifact, Name: "page.html", Digest: "a", Size: 4}, true},
		"a tree": {run.State{Status: run.Done, Tree: tree},
			rundir.Result{Kind: rundir.ResultTree, Name: rundir.WorkspaceDir, Digest: "t"}, true},
	} {
		row.state.RunID, row.state.Seq = "r", 7
		row.want.Version, row.want.RunID, row.want.Seq, row.want.Chain = 1, "r", 7, "chain"
		got, ok := rundir.ResultOf(row.state, "page.html", "chain")
		require.Equal(t, row.ok, ok, name)
		require.Equal(t, row.want, got, name)
	}
}

// TestStatesOfOtherSchemas are refused.
func TestStatesOfOtherSchemas(t *testing.T) {
	s := rundir.NewState()
	for version, want := range map[int]string{rundir.StateSchema: "",
		2: "it has schema version 2, and this program writes version 3"} {
		s.SchemaVersion = version
		raw, err := json.Marshal(s)
		require.NoError(t, err)
		if _, err = put(t, nil).Parse(raw); want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, disk.ErrDamaged)
		require.ErrorContains(t, err, want)
	}
	_, err := put(t, map[string]string{rundir.StateFile: "{"}).State()
	require.ErrorIs(t, err, disk.ErrDamaged)
	_, err = put(t, nil).State()
	require.ErrorIs(t, err, fs.ErrNotExist)
}
