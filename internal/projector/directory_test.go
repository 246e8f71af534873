package projector_test

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
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
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
func claimed(t testing.TB) projector.Dir {
	t.Helper()
	d := projector.At(filepath.Join(t.TempDir(), "run"))
	require.NoError(t, d.Take(claim()))
	return d
}

func project(t testing.TB, d projector.Dir, s *story, batches ...projector.Batch) {
	t.Helper()
	for _, b := range batches {
		p, err := d.Project(context.Background(), s.blobs, b)
		require.NoError(t, err)
		require.Equal(t, run.ProjectionWritten, p.Outcome)
	}
}

// written is a directory that holds a story.
func written(t testing.TB, s *story) projector.Dir {
	t.Helper()
	s.send()
	d := claimed(t)
	project(t, d, s, s.batches...)
	return d
}

// rebuilt is the directory that a rebuild from the history of a story writes.
func rebuilt(t testing.TB, s *story) projector.Dir {
	t.Helper()
	d := projector.At(filepath.Join(t.TempDir(), "run"))
	_, err := d.Rebuild(context.Background(), s.blobs, projector.Source{Claim: claim(), Batches: s.batches})
	require.NoError(t, err)
	return d
}

// copyOf is a directory once more.
func copyOf(t testing.TB, d projector.Dir) projector.Dir {
	t.Helper()
	c := projector.At(filepath.Join(t.TempDir(), "run"))
	require.NoError(t, os.CopyFS(c.Root, os.DirFS(d.Root)))
	return c
}

// look returns the content of every file, and every folder.
func look(t testing.TB, d projector.Dir) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(d.Root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == d.Root {
			return err
		}
		rel, _ := filepath.Rel(d.Root, path)
		if rel == layout.ExportFile {
			return nil // names this boot of the machine
		}
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

func read(t testing.TB, d projector.Dir, name string) string {
	t.Helper()
	raw, err := os.ReadFile(d.Path(name))
	require.NoError(t, err)
	return string(raw)
}

func write(t testing.TB, d projector.Dir, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(d.Path(name)), 0o755))
	require.NoError(t, os.WriteFile(d.Path(name), []byte(text), 0o600))
}

func appendTo(t testing.TB, d projector.Dir, name, text string) {
	t.Helper()
	write(t, d, name, read(t, d, name)+text)
}

func remove(t testing.TB, d projector.Dir, name string) {
	t.Helper()
	require.NoError(t, os.Remove(d.Path(name)))
}

// writeJournal replaces events.jsonl.
func writeJournal(t testing.TB, d projector.Dir, lines []string) {
	t.Helper()
	write(t, d, layout.EventsFile, strings.Join(lines, "\n")+"\n")
}

func setKey(t testing.TB, d projector.Dir, key, value string) {
	t.Helper()
	var meta map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(read(t, d, layout.MetaFile)), &meta))
	meta[key] = json.RawMessage(value)
	raw, err := json.Marshal(meta)
	require.NoError(t, err)
	write(t, d, layout.MetaFile, string(raw))
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
func seal(t testing.TB, s *story, d projector.Dir, lines int) (head string) {
	t.Helper()
	sealed, err := d.Seal(context.Background(), s.blobs, projector.Sealing{RunID: s.id, First: 1,
		Tail: tailOf(s.lines[:lines])})
	require.NoError(t, err)
	return sealed.Head
}

func check(t testing.TB, d projector.Dir) projector.Report {
	t.Helper()
	return checkWith(t, d, projector.CheckOptions{})
}

func checkWith(t testing.TB, d projector.Dir, o projector.CheckOptions) projector.Report {
	t.Helper()
	r, err := projector.Check(context.Background(), d.Dir, o)
	require.NoError(t, err)
	return r
}

// repair applies a repair with the contents of a store.
func repair(t testing.TB, d projector.Dir, blobs projector.Blobs) projector.RepairResult {
	t.Helper()
	res, err := projector.Repair(context.Background(), d, projector.RepairOptions{Apply: true, Blobs: blobs,
		ReadTree: readTree})
	require.NoError(t, err)
	return res
}

func codesOf(r projector.Report) []projector.Code {
	var out []projector.Code
	for _, i := range r.Issues {
		out = append(out, i.Code)
	}
	return slices.Compact(out)
}

// planned is what a repair changes, as a row of the table has it.
func planned(r projector.RepairResult) string {
	if r.NeedsOperatorDecision {
		return "operator"
	}
	var fields []string
	for _, c := range r.Changes {
		fields = append(fields, c.File)
	}
	return strings.Join(slices.Compact(fields), " ")
}
