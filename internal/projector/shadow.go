package projector

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// NewShadow returns an empty list for a directory. deep is its store; nil: lists are read from the directory only.
func NewShadow(ctx context.Context, d Dir, deep Blobs) *Shadow {
	s := &Shadow{Files: map[string]ShadowFile{}}
	s.p = &Projector{Ctx: ctx, Dir: d, Blobs: &shadowBlobs{dir: d.Dir, store: deep}, records: rundir.NewState(),
		shadow: s}
	s.w = &batchWriter{dir: d, list: s.list}
	if deep != nil {
		s.Blobs = map[string]string{}
	}
	return s
}

// Take adds the files of the next event. chain and after are those up to the event.
func (s *Shadow) Take(e run.Event, chain run.Chain, after *rundir.Meta) {
	if s.Err != nil {
		return
	}
	p := s.p
	before := p.meta.State
	p.last, p.chain, p.chains = e.Seq, chain, append(p.chains[:0], chain)
	p.meta.Meta = *after
	err := p.evidence(s.w, e, before)
	if err == nil {
		err = p.applyRecords(s.w, e)
	}
	if s.Err == nil { // the list has found none
		s.Err = err
	}
	p.records.ArtifactBackups, p.records.Checkpoints, p.records.ErrorHistory = nil, nil, nil // no file is made of them
	clear(p.records.PassRecords)
}

// list records a file that is written.
func (s *Shadow) list(f wholeFile) {
	name := f.name
	if !fs.ValidPath(name) {
		s.Err = fmt.Errorf("%s is not in %s", name, s.p.Dir.Root)
		return
	}
	now := ShadowFile{Tree: f.tree, Blob: f.digest != ""}
	switch {
	case f.digest != "":
		now.Digests = []string{f.digest}
		if s.Blobs != nil && s.Blobs[f.digest] == "" {
			s.Blobs[f.digest] = name
		}
	case f.tree != "":
	case strings.HasPrefix(name, layout.CheckpointsDir+"/"):
		// derived from the records, whose form depends on the release that wrote them: the record in state.json has the
		// digests
		return
	default:
		now.Digests = []string{disk.Digest(f.data)}
	}
	if was, there := s.Files[name]; s.More && there {
		now.Digests = append(now.Digests, was.Digests...)
	} else if s.More {
		return // may not be written yet
	}
	s.Files[name] = now
}

// move records that a file is superseded.
func (s *Shadow) move(from, to string) {
	f, there := s.Files[from]
	switch {
	case !there:
	case s.More:
		f.Gone = true
		s.Files[from] = f
	default:
		delete(s.Files, from)
		s.Files[to] = f
	}
}

// in lists the files of a folder, by name.
func (s *Shadow) in(folder string) []string {
	var names []string
	for name := range s.Files {
		if path.Dir(name) == folder {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// shadowBlobs returns the lists that events name by digest: from the directory, else from the store. A list that
// neither has is empty; the file that contains it is expected nevertheless.
type shadowBlobs struct {
	Blobs // writes nothing
	dir   rundir.Dir
	store Blobs
	lists map[string][]byte // of the directory, by digest
}

func (b *shadowBlobs) Get(ctx context.Context, want string) ([]byte, error) {
	if err := b.read(); err != nil {
		return nil, err
	}
	if raw, there := b.lists[want]; there {
		return raw, nil
	}
	if b.store != nil {
		if raw, err := b.store.Get(ctx, want); !disk.Lost(err) {
			return raw, err
		}
	}
	return []byte("null"), nil
}

// read reads every list of the directory, once.
func (b *shadowBlobs) read() error {
	if b.lists != nil {
		return nil
	}
	b.lists = map[string][]byte{}
	skip := []string{layout.CheckpointsDir, layout.ArchivesDir, layout.InputsDir}
	err := b.dir.Walk(layout.Orchestrator, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // moved concurrently
		case err != nil:
			return err
		case e.IsDir() && slices.Contains(skip, name):
			return fs.SkipDir
		case !e.Type().IsRegular() || e.Name() != layout.ShotsFile && e.Name() != path.Base(layout.InputsFile):
			return nil
		}
		raw, err := b.dir.ReadFile(name)
		if err == nil {
			b.lists[disk.Digest(raw)] = raw
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return err
}
