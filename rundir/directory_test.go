package rundir_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
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

var (
	noon    = time.Date(2026, 1, 3, 12, 0, 0, 0, time.UTC)
	errStop = errors.New("the machine stops here")
)

// stopAt fails every step of a disk from the kth on.
func stopAt(k int) disk.Disk {
	n := -1
	return disk.Disk{Hook: func(disk.Step) error {
		if n++; n >= k {
			return errStop
		}
		return nil
	}}
}

func claim() run.Claim {
	return run.Claim{Version: 1, RunID: "run-1", ThreadID: "thread-1", CreatedAt: moment(0), Pipeline: "page", Host: "h"}
}

// claimed is a directory with the claim of a run, and nothing else.
func claimed(t testing.TB) rundir.Dir {
	t.Helper()
	d := rundir.At(filepath.Join(t.TempDir(), "run"))
	require.NoError(t, d.Take(claim()))
	return d
}

func project(t testing.TB, d rundir.Dir, s *story, batches ...rundir.Batch) {
	t.Helper()
	for _, b := range batches {
		p, err := d.Project(context.Background(), s.blobs, b)
		require.NoError(t, err)
		require.Equal(t, run.ProjectionWritten, p.Outcome)
	}
}

// written is a directory that holds a story.
func written(t testing.TB, s *story) rundir.Dir {
	t.Helper()
	s.send()
	d := claimed(t)
	project(t, d, s, s.batches...)
	return d
}

// rebuilt is the directory that a rebuild from the history of a story writes.
func rebuilt(t testing.TB, s *story) rundir.Dir {
	t.Helper()
	d := rundir.At(filepath.Join(t.TempDir(), "run"))
	_, err := d.Rebuild(context.Background(), s.blobs, rundir.Source{Claim: claim(), Batches: s.batches})
	require.NoError(t, err)
	return d
}

// copyOf is a directory once more.
func copyOf(t testing.TB, d rundir.Dir) rundir.Dir {
	t.Helper()
	c := rundir.At(filepath.Join(t.TempDir(), "run"))
	require.NoError(t, os.CopyFS(c.Root, os.DirFS(d.Root)))
	return c
}

// look returns the content of every file, and every folder.
func look(t testing.TB, d rundir.Dir) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(d.Root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == d.Root {
			return err
		}
		rel, _ := filepath.Rel(d.Root, path)
		if e.IsDir() {
			files[rel+"/"] = ""
			return nil
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a link to a file that was lost
		}
		files[filepath.ToSlash(rel)] = string(data)
		return err
	}))
	return files
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
		require.Contains(t, want, name, when)
	}
}

func read(t testing.TB, d rundir.Dir, name string) string {
	t.Helper()
	raw, err := os.ReadFile(d.Path(name))
	require.NoError(t, err)
	return string(raw)
}

func write(t testing.TB, d rundir.Dir, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(d.Path(name)), 0o755))
	require.NoError(t, os.WriteFile(d.Path(name), []byte(text), 0o600))
}

func appendTo(t testing.TB, d rundir.Dir, name, text string) {
	t.Helper()
	write(t, d, name, read(t, d, name)+text)
}

func remove(t testing.TB, d rundir.Dir, name string) {
	t.Helper()
	require.NoError(t, os.Remove(d.Path(name)))
}

// writeJournal replaces events.jsonl.
func writeJournal(t testing.TB, d rundir.Dir, lines []string) {
	t.Helper()
	write(t, d, rundir.EventsFile, strings.Join(lines, "\n")+"\n")
}

func setKey(t testing.TB, d rundir.Dir, key, value string) {
	t.Helper()
	var meta map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(read(t, d, rundir.MetaFile)), &meta))
	meta[key] = json.RawMessage(value)
	raw, err := json.Marshal(meta)
	require.NoError(t, err)
	write(t, d, rundir.MetaFile, string(raw))
}

// changed is a journal with another byte in one line, from 1.
func changed(lines []string, line int) []string {
	out := slices.Clone(lines)
	out[line-1] = strings.Replace(out[line-1], "03:04", "03:05", 1)
	return out
}

// changedByte changes a letter or digit near the n-th quarter; the size stays.
func changedByte(raw []byte, n int) []byte {
	out := slices.Clone(raw)
	for i := range out {
		at := (len(out)*n/4 + i) % len(out)
		if c := out[at]; c >= 'a' && c <= 'y' || c >= '0' && c <= '8' {
			out[at]++
			return out
		}
	}
	return nil
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// tailOf is the end of a journal.
func tailOf(lines []string) run.Tail {
	return run.Tail{Seq: int64(len(lines)), Chain: run.Chain("").Over(lines)}
}

// seal stores the first lines of a story's journal as one segment.
func seal(t testing.TB, s *story, d rundir.Dir, lines int) (head string) {
	t.Helper()
	sealed, err := d.Seal(context.Background(), s.blobs, rundir.Sealing{RunID: s.id, First: 1,
		Tail: tailOf(s.lines[:lines])})
	require.NoError(t, err)
	return sealed.Head
}

func check(t testing.TB, d rundir.Dir) rundir.Report {
	t.Helper()
	return checkWith(t, d, rundir.CheckOptions{})
}

func checkWith(t testing.TB, d rundir.Dir, o rundir.CheckOptions) rundir.Report {
	t.Helper()
	r, err := rundir.Check(context.Background(), d, o)
	require.NoError(t, err)
	return r
}

// repair applies a repair with the contents of a store.
func repair(t testing.TB, d rundir.Dir, blobs rundir.Blobs) rundir.RepairResult {
	t.Helper()
	res, err := rundir.Repair(context.Background(), d, rundir.RepairOptions{Apply: true, Blobs: blobs,
		ReadTree: readTree})
	require.NoError(t, err)
	return res
}

func codesOf(r rundir.Report) []rundir.Code {
	var out []rundir.Code
	for _, i := range r.Issues {
		out = append(out, i.Code)
	}
	return slices.Compact(out)
}

// planned is what a repair changes, as a row of the table has it.
func planned(r rundir.RepairResult) string {
	if r.NeedsOperatorDecision {
		return "operator"
	}
	var fields []string
	for _, c := range r.Changes {
		fields = append(fields, c.File)
	}
	return strings.Join(slices.Compact(fields), " ")
}
