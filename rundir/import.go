package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// MissingError lists the blobs that a run needs to continue and that neither the store nor its directory has.
type MissingError struct {
	Dir   string   // empty: it no longer exists
	Blobs []string // description and digest
}

func (e *MissingError) Error() string {
	if e.Dir == "" {
		return "the store lacks " + strings.Join(e.Blobs, ", ")
	}
	return fmt.Sprintf("%s cannot continue: the store and the directory lack %s", e.Dir, strings.Join(e.Blobs, ", "))
}

// need is a blob without which a run cannot continue.
type need struct{ what, digest string }

// Import makes sure that the store has what the run needs to continue. If something is missing, every file of the
// directory is stored: these files are the blobs of the run (requirement 004: the directory alone suffices). files is
// the number of stored files.
func Import(ctx context.Context, d Dir, blobs Blobs, start run.RunStart, s run.State) (files int, err error) {
	lacks, err := missingNeeds(ctx, blobs, start, s)
	if err != nil || len(lacks) == 0 {
		return 0, err
	}
	if files, err = importAll(ctx, d, blobs); err != nil {
		return files, err
	}
	if lacks, err = missingNeeds(ctx, blobs, start, s); err != nil || len(lacks) == 0 {
		return files, err
	}
	return files, missed(d.Root, lacks)
}

// Complete returns a *MissingError if the store lacks what a run needs to continue from a state.
func Complete(ctx context.Context, blobs Blobs, start run.RunStart, s run.State) error {
	lacks, err := missingNeeds(ctx, blobs, start, s)
	if err != nil || len(lacks) == 0 {
		return err
	}
	return missed("", lacks)
}

func missed(dir string, lacks []need) *MissingError {
	e := &MissingError{Dir: dir}
	for _, n := range lacks {
		e.Blobs = append(e.Blobs, fmt.Sprintf("%s (%.12s)", n.what, n.digest))
	}
	return e
}

// missingNeeds lists the needs that the store does not satisfy.
func missingNeeds(ctx context.Context, blobs Blobs, start run.RunStart, s run.State) ([]need, error) {
	var out []need
	for _, n := range needs(start, s) {
		raw, err := blobs.Get(ctx, n.digest)
		if disk.Lost(err) {
			out = append(out, n)
			continue
		}
		if err != nil {
			return nil, err
		}
		more, err := parts(n, raw)
		if err != nil {
			return nil, err
		}
		for _, m := range more {
			if _, err := blobs.Get(ctx, m.digest); disk.Lost(err) {
				out = append(out, m)
			} else if err != nil {
				return nil, err
			}
		}
	}
	if s.Tree != nil {
		if _, err := blobs.Manifest(ctx, s.Tree.Digest); disk.Lost(err) {
			out = append(out, need{"the list of the workspace's files", s.Tree.Digest})
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func needs(start run.RunStart, s run.State) []need {
	all := []need{{"the plan", start.Plan}, {"the definition", start.Definition}, {"the list of inputs", start.Inputs}}
	if start.Brief != nil {
		all = append(all, need{"the brief of the parent", start.Brief.Digest})
	}
	if p := s.PlanInForce(start); p != start.PlanRef() {
		all = append(all, need{"the amended plan", p.Plan}, need{"the amended definition", p.Definition},
			need{"the list of inputs", p.Inputs})
	}
	if s.Artifact != nil {
		all = append(all, need{"the artifact", s.Artifact.Digest})
	}
	if s.Pictures != nil {
		all = append(all, need{"the list of pictures", s.Pictures.Digest})
	}
	for _, n := range s.Notes {
		all = append(all, need{"notes " + n.File, n.Whole.Digest})
	}
	for _, r := range s.Replies {
		all = append(all, need{"the reply of " + r.Step, r.Reply.Digest})
	}
	var out []need
	for _, n := range all {
		if n.digest != "" {
			out = append(out, n)
		}
	}
	return out
}

// parts returns the blobs that a list in the store refers to.
func parts(n need, raw []byte) ([]need, error) {
	var out []need
	switch n.what {
	case "the list of inputs":
		var in Inputs
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, fmt.Errorf("manifest of inputs %s: %w", n.digest, err)
		}
		for _, f := range in.Files {
			out = append(out, need{"input " + f.Path, f.Digest})
		}
	case "the list of pictures":
		var shots []run.Shot
		if err := json.Unmarshal(raw, &shots); err != nil {
			return nil, fmt.Errorf("manifest of pictures %s: %w", n.digest, err)
		}
		for _, s := range shots {
			out = append(out, need{"picture " + s.Name, s.Digest})
		}
	}
	return out, nil
}

// importAll stores every file of the directory, except those that are derived from events or belong to other runs.
func importAll(ctx context.Context, d Dir, blobs Blobs) (files int, err error) {
	skip := map[string]bool{ArchivesDir: true, LogsDir: true, TornDir: true}
	err = d.Walk(".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case skip[name]:
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		data, err := d.ReadFile(name)
		if err != nil {
			return err
		}
		if err := importOne(ctx, blobs, name, data); err != nil {
			return fmt.Errorf("store %s: %w", d.Path(name), err)
		}
		files++
		return nil
	})
	return files, err
}

// importOne stores a file. The manifest of a turn's tree is stored as the lists of its folders. A changed manifest is
// skipped; the blobs it lacks are then reported.
func importOne(ctx context.Context, blobs Blobs, name string, data []byte) error {
	if path.Base(name) == "manifest.json" && path.Dir(path.Dir(name)) == SnapshotsDir {
		if err := blobs.PutTree(ctx, data); !errors.Is(err, disk.ErrDamaged) {
			return err
		}
		return nil
	}
	_, err := blobs.Put(ctx, data)
	return err
}
