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

// observer records what a reader sees of a run directory while the run continues.
type observer struct {
	dir      string
	states   []object          // each content of state.json, in order
	partial  []string          // readings of state.json that were not whole JSON objects
	records  map[string]string // pass records as they were first seen
	rewrote  []string          // pass records that changed later
	sizes    map[string]int64  // of the logs
	heads    map[string]string // their first kilobyte
	shrunk   []string          // logs that got shorter, or began otherwise
	files    map[string]bool   // every file that existed at some time, without temporary ones
	readings atomic.Int64
	reading  sync.Mutex
	known    map[string]os.FileInfo // state.json and the logs as they were last read
	free     func()                 // ends the holding of calls
	stop     chan struct{}
	done     sync.WaitGroup
}

const (
	// readEvery is the time between two readings. Each reads only what has changed since the previous one, because the
	// observed programs need the processor.
	readEvery = 4 * time.Millisecond
	// walkEvery is the number of readings for each walk through the whole directory, which takes far longer.
	walkEvery = 50
)

// observe reads a directory until end is called.
func observe(t *testing.T, dir string) *observer {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	s := &observer{dir: dir, records: map[string]string{}, sizes: map[string]int64{}, heads: map[string]string{},
		files: map[string]bool{}, known: map[string]os.FileInfo{}, free: func() {}, stop: make(chan struct{})}
	s.done.Go(func() {
		tick := time.NewTicker(readEvery)
		defer tick.Stop()
		for n := 0; ; n++ {
			s.read(n%walkEvery == 0)
			s.readings.Add(1)
			select {
			case <-s.stop:
				s.read(true)
				return
			case <-tick.C:
			}
		}
	})
	return s
}

// await waits until everything has been read as it is now.
func (s *observer) await(t *testing.T) {
	t.Helper()
	s.readings.Store(0)
	until(t, "the directory is read", func() bool { return s.readings.Load() > walkEvery+1 })
}

func (s *observer) end() *observer {
	s.free()
	close(s.stop)
	s.done.Wait()
	return s
}

// holdCalls makes each call of the scripted agent wait until the observer has read the directory, so it sees what is on
// disk when a call begins, however slow the machine is. The agent reads a named pipe instead of its fault file: it gets
// no faults, after the reading.
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
			s.read(true)
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

func (s *observer) read(walk bool) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if walk {
		s.readFiles()
	}
	s.readLogs()
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
	s.readRecords(o)
}

// changed reports whether a file is another one than at the last call, and remembers it.
func (s *observer) changed(path string, now os.FileInfo) bool {
	last, ok := s.known[path]
	s.known[path] = now
	return !ok || !os.SameFile(last, now) || last.Size() != now.Size() || !last.ModTime().Equal(now.ModTime())
}

func (s *observer) readRecords(o object) {
	records, _ := o["passRecords"].(map[string]any)
	for n, r := range records {
		raw, _ := json.Marshal(r)
		if was, ok := s.records[n]; ok && was != string(raw) {
			s.rewrote = append(s.rewrote, n)
		}
		s.records[n] = string(raw)
	}
}

func (s *observer) readLogs() {
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

func (s *observer) readFiles() {
	_ = filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && !temporary(path) {
			s.files[path] = true
		}
		return nil // a temporary file may be gone at this moment
	})
}

// gone returns the files that existed and no longer do.
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

// values returns the values of a key of state.json, in order, without repetitions.
func (s *observer) values(key string) []any {
	var out []any
	for _, o := range s.states {
		out = append(out, o[key])
	}
	return slices.Compact(out)
}
