package conformance

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sight is what a watcher saw of a run directory while the run went on.
type sight struct {
	dir     string
	states  []object          // state.json as often as it was another one, in order
	ages    []time.Duration   // of each: the file's time less lastSavedAt
	partial []string          // readings of state.json that were no whole JSON object
	records map[string]string // pass records as they were first seen
	rewrote []string          // pass records that changed later
	sizes   map[string]int64  // of the logs
	heads   map[string]string // their first kilobyte
	shrunk  []string          // logs that got shorter, or began otherwise
	files   map[string]bool   // every file that ever was there, temporary ones aside
	told    told
	looked  atomic.Int64
	stop    chan struct{}
	done    sync.WaitGroup
}

// told is what the kernel said.
type told struct {
	works    bool
	renamed  int      // times that a file was renamed into state.json
	replaced int      // by a state.json.tmp.* of the same folder
	readBack int      // of these, read before
	removed  []string // files that were unlinked or renamed away, temporary ones aside
}

// watch looks at a directory in a tight loop until end is called.
func watch(t *testing.T, dir string) *sight {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	s := &sight{dir: dir, records: map[string]string{}, sizes: map[string]int64{}, heads: map[string]string{}, files: map[string]bool{}, stop: make(chan struct{})}
	listen(t, s)
	s.done.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			s.look()
			s.looked.Add(1)
			select {
			case <-s.stop:
				s.look()
				return
			case <-tick.C:
			}
		}
	})
	return s
}

// await waits until the watcher has looked at a file as it is now.
func (s *sight) await(t *testing.T, file string) {
	t.Helper()
	s.looked.Store(0)
	until(t, "the watcher has seen "+file, func() bool { return s.looked.Load() > 1 })
}

func (s *sight) end() *sight {
	close(s.stop)
	s.done.Wait()
	return s
}

func (s *sight) look() {
	s.lookAtLogs()
	s.lookAtFiles()
	path := filepath.Join(s.dir, statePathIn)
	raw, err := os.ReadFile(path)
	if err != nil {
		if len(s.states) > 0 {
			s.partial = append(s.partial, err.Error())
		}
		return
	}
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		s.partial = append(s.partial, err.Error()+": "+string(raw[:min(len(raw), 80)]))
		return
	}
	if n := len(s.states); n > 0 && s.states[n-1]["lastSeq"] == o["lastSeq"] {
		return
	}
	s.states = append(s.states, o)
	if fi, err := os.Stat(path); err == nil {
		saved, _ := time.Parse(time.RFC3339, o["lastSavedAt"].(string))
		s.ages = append(s.ages, fi.ModTime().Sub(saved))
	}
	s.lookAtRecords(o)
}

func (s *sight) lookAtRecords(o object) {
	records, _ := o["passRecords"].(map[string]any)
	for n, r := range records {
		raw, _ := json.Marshal(r)
		if was, ok := s.records[n]; ok && was != string(raw) {
			s.rewrote = append(s.rewrote, n)
		}
		s.records[n] = string(raw)
	}
}

func (s *sight) lookAtLogs() {
	entries, _ := os.ReadDir(filepath.Join(s.dir, logs))
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(s.dir, logs, e.Name()))
		head := string(raw[:min(len(raw), 1024)])
		if err != nil || int64(len(raw)) < s.sizes[e.Name()] || !strings.HasPrefix(head, s.heads[e.Name()]) {
			s.shrunk = append(s.shrunk, e.Name())
		}
		s.sizes[e.Name()], s.heads[e.Name()] = int64(len(raw)), head
	}
}

func (s *sight) lookAtFiles() {
	_ = filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !temporary(path) {
			s.files[path] = true
		}
		return nil // a temporary file may be gone at this moment
	})
}

// gone lists the files that were there once and are not any more.
func (s *sight) gone() []string {
	var out []string
	for path := range s.files {
		if _, err := os.Lstat(path); err != nil {
			out = append(out, path)
		}
	}
	return out
}

func temporary(path string) bool { return strings.Contains(filepath.Base(path), ".tmp.") }

// values lists what a key had, in order, without repetitions.
func (s *sight) values(key string) []any {
	var out []any
	for _, o := range s.states {
		out = append(out, o[key])
	}
	return slices.Compact(out)
}
