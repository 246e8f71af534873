package rundir

import (
	"errors"
	"io/fs"
	"path"

	"github.com/passbook-run/passbook/internal/disk"
)

// Records reads the records as of the last event: state.json, or those folded from the journal, where a long run has
// continued since the file was written.
func Records(d Dir) (PipelineState, error) {
	b, err := d.State()
	if err != nil {
		return b, err
	}
	m, err := d.Meta()
	if err != nil || m.Events.Seq <= b.LastSeq {
		return b, nil //nolint:nilerr // meta.json is to be made again: state.json counts
	}
	all, err := ReadStream(d, EventsFile, 0)
	if err != nil {
		return b, err
	}
	f, err := d.folded(all.Lines[:min(m.Events.Seq, int64(len(all.Lines)))])
	return f.State, err
}

// folded folds lines of the directory, without its store.
func (d Dir) folded(lines []string) (*Fold, error) {
	f := newFold(&dirSource{dir: d})
	for _, line := range lines {
		if err := f.take(line); err != nil {
			return f, err
		}
	}
	return f, nil
}

// dirSource is a directory without its store: it has the lists that are files of the directory.
type dirSource struct {
	dir   Dir
	lists map[string][]byte // by digest; nil: not read
}

func (s *dirSource) Lines(last int64) ([]string, error) {
	all, err := ReadStream(s.dir, EventsFile, 0)
	return all.Lines[:min(last, int64(len(all.Lines)))], err
}

func (s *dirSource) List(digest string) ([]byte, error) {
	if s.lists == nil {
		s.lists = map[string][]byte{}
		if err := s.read(); err != nil {
			return nil, err
		}
	}
	if raw, there := s.lists[digest]; there {
		return raw, nil
	}
	return nil, fs.ErrNotExist
}

// read reads every list of the directory.
func (s *dirSource) read() error {
	err := s.dir.Walk(Orchestrator, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // moved concurrently
		case err != nil:
			return err
		case e.IsDir() && (name == CheckpointsDir || name == ArchivesDir || name == InputsDir):
			return fs.SkipDir
		case !e.Type().IsRegular() || e.Name() != ShotsFile && e.Name() != path.Base(InputsFile):
			return nil
		}
		raw, err := s.dir.ReadRaw(name)
		s.lists[disk.Digest(raw)] = raw
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
