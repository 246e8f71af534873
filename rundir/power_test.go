package rundir_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// power knows what a power failure takes: what was written and not synced since.
type power struct {
	sizes map[string]int64   // of written files, up to which they are on disk
	names map[string]*string // new names that are not on disk; the content that a file of that name had before
	left  int                // steps until the machine stops; negative: it does not
}

func newPower(steps int) *power {
	return &power{sizes: map[string]int64{}, names: map[string]*string{}, left: steps}
}

// before is called before each step.
func (p *power) before(s disk.Step) error {
	if p.left == 0 {
		return errStop
	}
	p.left--
	switch s.Op {
	case disk.OpCreate, disk.OpMkdir, disk.OpLink, disk.OpRename:
		raw, err := os.ReadFile(s.Path)
		_, known := p.names[s.Path]
		switch _, gone := os.Lstat(s.Path); {
		case gone != nil:
			p.names[s.Path] = nil
		case err == nil && !known && s.Op == disk.OpRename:
			old := string(raw)
			p.names[s.Path] = &old
		}
		if s.Op == disk.OpRename || s.Op == disk.OpLink {
			for temp, size := range maps.All(p.sizes) {
				moved := temp == strings.Replace(s.Path, "~1/", "/", 1) // evidence that a revert supersedes
				if moved || strings.HasPrefix(temp, s.Path+".tmp.") {
					p.sizes[s.Path] = size
					delete(p.sizes, temp)
				}
			}
		}
	case disk.OpWrite:
		if _, known := p.sizes[s.Path]; !known {
			info, err := os.Stat(s.Path)
			if err != nil {
				return err
			}
			p.sizes[s.Path] = info.Size()
		}
	case disk.OpSync:
		delete(p.sizes, s.Path)
	case disk.OpSyncFolder:
		maps.DeleteFunc(p.names, func(name string, _ *string) bool { return filepath.Dir(name) == s.Path })
	case disk.OpSyncSystem:
		clear(p.sizes)
		clear(p.names)
	}
	return nil
}

// fail removes what is not on disk: the ends of files, and names. written names what the system has written anyway.
func (p *power) fail(t *testing.T, written func(name string) bool) (lost []string) {
	t.Helper()
	for name, size := range p.sizes {
		if written(name) {
			continue
		}
		if info, err := os.Stat(name); err == nil && info.Size() > size {
			require.NoError(t, os.Truncate(name, size))
			lost = append(lost, filepath.Base(name))
		}
	}
	for name, old := range p.names {
		if written(name) {
			continue
		}
		if old != nil {
			require.NoError(t, os.WriteFile(name, []byte(*old), 0o600))
		} else {
			require.NoError(t, os.RemoveAll(name))
		}
		lost = append(lost, filepath.Base(name))
	}
	return lost
}

// inPieces is a story as many batches: each ends where a call begins.
func inPieces(s *story) (all []rundir.Batch) {
	first := 1
	for n, line := range s.lines {
		if strings.Contains(line, `"kind":"pass.start"`) || n == len(s.lines)-1 {
			all = append(all, batch(s.lines, first, n+1))
			first = n + 2
		}
	}
	return all
}

// reverted is a story with a pass that is made again after a revert.
func reverted(t *testing.T) *story {
	s := newStory(t)
	s.start()
	s.pass(1)
	then := s.state
	s.pass(2)
	s.revert(then)
	s.pass(2)
	s.finish(run.Done)
	return s
}

// TestPowerFailure stops the machine before a step of a run, and takes what was not synced. After the next boot the
// run continues, and its directory is that of an undisturbed run, byte for byte.
func TestPowerFailure(t *testing.T) {
	all := func(string) bool { return false }
	logs := func(name string) bool { return strings.HasSuffix(name, ".jsonl") || strings.Contains(name, "/logs") }
	for what, row := range map[string]struct {
		story *story
		kept  func(string) bool
		names []string // that are lost at some step
	}{
		"all":               {whole(t), all, []string{"prompt.md", "state-snapshot.json", "pass-001"}},
		"but the logs":      {whole(t), logs, []string{"prompt.md", "state-snapshot.json", "pass-001"}},
		"of a reverted run": {reverted(t), logs, []string{"prompt.md"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, kept := row.story, row.kept
			batches := inPieces(s)
			want := look(t, written(t, s))
			taken := map[string]int{}
			for k, done := 0, false; !done; k += 59 {
				p := newPower(k)
				d := claimed(t)
				d.Disk, d.Folds = disk.Disk{Hook: p.before}, new(rundir.Folds)
				at, err := 0, error(nil)
				for ; at < len(batches) && err == nil; at++ {
					_, err = d.Project(context.Background(), s.blobs, batches[at])
				}
				if done = err == nil; !done {
					require.ErrorIs(t, err, errStop)
				}
				for _, name := range p.fail(t, kept) {
					taken[name]++
				}
				d.Disk, d.Folds = disk.Disk{}, new(rundir.Folds)
				project(t, d, s, batches[at-1:]...)
				got := look(t, d)
				maps.DeleteFunc(got, func(name, _ string) bool { return disk.IsTemp(filepath.Base(name)) })
				same(t, want, got, fmt.Sprintf("power failure before step %d", k))
			}
			for _, name := range row.names {
				require.Positive(t, taken[name], "%s was never lost: %v", name, taken)
			}
		})
	}
}
