package conformance

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// observer records what a watcher sees of a run directory while the run continues.
type observer struct {
	dir     string
	states  []object          // state.json as often as it was another one, in order
	ages    []time.Duration   // of each: the file's time less lastSavedAt
	partial []string          // readings of state.json that were not whole JSON object
	records map[string]string // pass records as they were first seen
	rewrote []string          // pass records that changed later
	sizes   map[string]int64  // of the logs
	heads   map[string]string // their first kilobyte
	shrunk  []string          // logs that got shorter, or began otherwise
	files   map[string]bool   // every file that ever was there, temporary ones aside
	kernel  kernelEvents
	looked  atomic.Int64
	reading sync.Mutex             // held by whoever looks
	known   map[string]os.FileInfo // state.json and the logs as they were last read
	free    func()                 // ends the holding of calls
	stop    chan struct{}
	done    sync.WaitGroup
}

// kernelEvents counts the events of the kernel.
type kernelEvents struct {
	works    bool
	renamed  int      // times that a file was renamed into state.json
	replaced int      // by a state.json.tmp.* of the same folder
	whole    int      // of these, heard of from their beginning: what is older than the watch on its folder is not
	unread   []string // of the latter, those that were not read before
	removed  []string // files that were unlinked or renamed away, temporary ones aside
}

// walkEvery is the number of looks for each walk through the whole directory, which takes far longer than the rest of a
// look.
const walkEvery = 100

// watch looks at a directory every millisecond until end is called. A look reads only what has changed since the last
// one: the processor is needed by what is watched.
func watch(t *testing.T, dir string) *observer {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	s := &observer{dir: dir, records: map[string]string{}, sizes: map[string]int64{}, heads: map[string]string{},
		files: map[string]bool{}, known: map[string]os.FileInfo{}, free: func() {}, stop: make(chan struct{})}
	listen(t, s)
	s.done.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			if n%walkEvery == 0 {
				s.lookAtFiles()
			}
			s.read()
			s.looked.Add(1)
			select {
			case <-s.stop:
				s.lookAtFiles()
				s.read()
				return
			case <-tick.C:
			}
		}
	})
	return s
}

// await waits until the watcher has looked at a file as it is now.
func (s *observer) await(t *testing.T, file string) {
	t.Helper()
	s.looked.Store(0)
	until(t, "the watcher has seen "+file, func() bool { return s.looked.Load() > 1 })
}

func (s *observer) end() *observer {
	s.free()
	close(s.stop)
	s.done.Wait()
	return s
}

// holdCalls makes each call of the scripted agent wait until the watcher has looked, so what is on disk when a call
// begins is seen however slow the machine is. The agent reads a named pipe in the place of its fault file: it gets no
// faults, after the look.
func (s *observer) holdCalls(t *testing.T, faults string) {
	t.Helper()
	require.NoError(t, os.Remove(faults))
	require.NoError(t, syscall.Mkfifo(faults, 0o600))
	held := make(chan struct{})
	go func() {
		defer close(held)
		for {
			pipe, err := os.OpenFile(faults, os.O_WRONLY, 0) // waits for a reader
			if err != nil {
				return // it was removed
			}
			s.read()
			_ = pipe.Close()
		}
	}()
	s.free = sync.OnceFunc(func() {
		reader, err := os.OpenFile(faults, os.O_RDONLY|syscall.O_NONBLOCK, 0) // with it, nothing waits for a reader
		assert.NoError(t, err)
		assert.NoError(t, os.Remove(faults))
		<-held
		assert.NoError(t, reader.Close())
	})
	t.Cleanup(s.free)
}

func (s *observer) read() {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.lookAtLogs()
	path := filepath.Join(s.dir, statePathIn)
	fi, err := os.Stat(path)
	if err == nil && !s.changed(path, fi) {
		return
	}
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

// changed reports whether a file is another one than at the last call, and remembers it.
func (s *observer) changed(path string, now os.FileInfo) bool {
	last, ok := s.known[path]
	s.known[path] = now
	return !ok || !os.SameFile(last, now) || last.Size() != now.Size() || !last.ModTime().Equal(now.ModTime())
}

func (s *observer) lookAtRecords(o object) {
	records, _ := o["passRecords"].(map[string]any)
	for n, r := range records {
		raw, _ := json.Marshal(r)
		if was, ok := s.records[n]; ok && was != string(raw) {
			s.rewrote = append(s.rewrote, n)
		}
		s.records[n] = string(raw)
	}
}

func (s *observer) lookAtLogs() {
	entries, _ := os.ReadDir(filepath.Join(s.dir, logs))
	for _, e := range entries {
		path := filepath.Join(s.dir, logs, e.Name())
		fi, err := e.Info()
		if err == nil && !s.changed(path, fi) {
			continue
		}
		head, size := "", int64(0)
		if err == nil {
			size = fi.Size()
			head, err = headOf(path)
		}
		if err != nil || size < s.sizes[e.Name()] || !strings.HasPrefix(head, s.heads[e.Name()]) {
			s.shrunk = append(s.shrunk, e.Name())
		}
		s.sizes[e.Name()], s.heads[e.Name()] = size, head
	}
}

// headOf reads the first kilobyte of a file.
func headOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 1024))
	return string(raw), err
}

func (s *observer) lookAtFiles() {
	_ = filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !temporary(path) {
			s.files[path] = true
		}
		return nil // a temporary file may be gone at this moment
	})
}

// gone lists the files that were there once and are not any more.
func (s *observer) gone() []string {
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
func (s *observer) values(key string) []any {
	var out []any
	for _, o := range s.states {
		out = append(out, o[key])
	}
	return slices.Compact(out)
}
