package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// object is a JSON object, read without the types of the code.
type object map[string]any

// at follows a path of keys; a key that is missing fails the test, null does not.
func (o object) at(t *testing.T, path string) any {
	t.Helper()
	var v any = map[string]any(o)
	for key := range strings.SplitSeq(path, ".") {
		m, ok := v.(map[string]any)
		require.True(t, ok, "%s: nothing below it", path)
		v, ok = m[key]
		require.True(t, ok, "%s: key %q is missing", path, key)
	}
	return v
}

func (o object) text(t *testing.T, path string) string {
	t.Helper()
	s, ok := o.at(t, path).(string)
	require.True(t, ok, "%s is not text: %v", path, o.at(t, path))
	return s
}

func (o object) number(t *testing.T, path string) float64 {
	t.Helper()
	n, ok := o.at(t, path).(float64)
	require.True(t, ok, "%s is not a number: %v", path, o.at(t, path))
	return n
}

func (o object) in(t *testing.T, path string) object {
	t.Helper()
	m, ok := o.at(t, path).(map[string]any)
	require.True(t, ok, "%s is not an object: %v", path, o.at(t, path))
	return m
}

func (o object) list(t *testing.T, path string) []any {
	t.Helper()
	l, ok := o.at(t, path).([]any)
	require.True(t, ok, "%s is not a list: %v", path, o.at(t, path))
	return l
}

func (o object) objects(t *testing.T, path string) []object {
	t.Helper()
	var out []object
	for _, v := range o.list(t, path) {
		m, ok := v.(map[string]any)
		require.True(t, ok)
		out = append(out, m)
	}
	return out
}

func (o object) keys() []string {
	var keys []string
	for k := range o {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return raw
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func parse(t *testing.T, raw []byte) object {
	t.Helper()
	var o object
	require.NoError(t, json.Unmarshal(raw, &o))
	return o
}

// result is a paused or completed run: its directory and what was observed.
type result struct {
	dir    string
	output string
	seen   *observer // nil if the run was not observed
	calls  []object
}

func (r result) path(name string) string               { return filepath.Join(r.dir, filepath.FromSlash(name)) }
func (r result) file(t *testing.T, name string) []byte { t.Helper(); return read(t, r.path(name)) }
func (r result) state(t *testing.T) object             { t.Helper(); return parse(t, r.file(t, statePathIn)) }
func (r result) log(t *testing.T, name string) []object {
	t.Helper()
	return lines(t, r.file(t, logs+name))
}
func (r result) text(t *testing.T) string {
	t.Helper()
	return string(r.file(t, logs+"orchestrator.log"))
}
func (r result) record(t *testing.T, n int) object {
	t.Helper()
	return r.state(t).in(t, "passRecords."+strconv.Itoa(n))
}
func (r result) cycle(t *testing.T, n int) object {
	t.Helper()
	return r.state(t).in(t, "paCycleRecords."+strconv.Itoa(n))
}
func (r result) prompt(t *testing.T, n int) string {
	t.Helper()
	return string(r.file(t, passDir(n)+"prompt.md"))
}
func (r result) decisions(t *testing.T, word string) []object {
	t.Helper()
	return where(r.log(t, "decisions.jsonl"), "decision", word)
}

// logFiles returns the contents of the logs by their names.
func (r result) logFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range names(t, r.path(logs)) {
		files[name] = string(r.file(t, logs+name))
	}
	return files
}

const (
	logs        = "_orchestrator/logs/"
	statePathIn = "_orchestrator/state.json"
)

func passDir(n int) string { return "_orchestrator/passes/pass-" + padded(n) + "/" }

func padded(n int) string {
	s := "00" + strconv.Itoa(n)
	return s[len(s)-3:]
}

// lines parses JSONL strictly: every line is one object, the last one is whole.
func lines(t *testing.T, raw []byte) []object {
	t.Helper()
	var out []object
	require.True(t, len(raw) == 0 || bytes.HasSuffix(raw, []byte("\n")), "the last line is not whole")
	for line := range bytes.Lines(raw) {
		out = append(out, parse(t, line))
	}
	return out
}

func where(rows []object, key string, value any) []object {
	return slices.DeleteFunc(slices.Clone(rows), func(o object) bool { return o[key] != value })
}

// count returns how often a pattern matches, line by line.
func count(text, pattern string) int {
	return len(regexp.MustCompile("(?m)"+pattern).FindAllString(text, -1))
}

func when(t *testing.T, ts string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, ts)
	require.NoError(t, err)
	return at
}

// tree is digests for tests.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := digests(dir)
	require.NoError(t, err)
	return files
}

// digests returns the digests of all files in a folder, without the lock of a run and temporary files.
func digests(dir string) (map[string]string, error) {
	files := map[string]string{}
	return files, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "run.lock" || temporary(path) {
			return err
		}
		raw, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = digest(raw)
		return err
	})
}

// settled reports whether nothing is being written: meta.json, which is written last, has seen the newest event.
func (r result) settled(t *testing.T) bool {
	t.Helper()
	events, meta := r.file(t, "events.jsonl"), parse(t, r.file(t, "meta.json"))
	if !bytes.HasSuffix(events, []byte("\n")) {
		return false
	}
	all := lines(t, events)
	return len(all) > 0 && all[len(all)-1]["seq"] == meta.at(t, "events.seq")
}

// costs returns the rows of the cost log, of which the last may be torn.
func (r result) costs(t *testing.T) []object {
	t.Helper()
	var out []object
	for line := range bytes.Lines(r.file(t, logs+"cost.jsonl")) {
		var o object
		require.NoError(t, json.Unmarshal(line, &o), "%s", line)
		out = append(out, o)
	}
	return out
}
