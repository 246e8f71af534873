package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// MissingError lists what a run needs to go on and neither the store nor its directory has.
type MissingError struct {
	Dir   string   // empty: there is none any more
	Blobs []string // what it is, and its digest
}

func (e *MissingError) Error() string {
	if e.Dir == "" {
		return "the store lacks " + strings.Join(e.Blobs, ", ")
	}
	return fmt.Sprintf("%s cannot go on: the store and the directory lack %s", e.Dir, strings.Join(e.Blobs, ", "))
}

// need is a blob that a run cannot do without.
type need struct{ what, digest string }

// Import makes sure that the store has what the run needs to go on. If something is missing, every file of the directory is put into the store:
// they are the bytes of its blobs (requirement 004: the directory alone suffices). files is how many were put.
func (d Dir) Import(ctx context.Context, blobs Blobs, start run.RunStart, s run.State) (files int, err error) {
	lacks, err := unfilled(ctx, blobs, start, s)
	if err != nil || len(lacks) == 0 {
		return 0, err
	}
	if files, err = d.importAll(ctx, blobs); err != nil {
		return files, err
	}
	if lacks, err = unfilled(ctx, blobs, start, s); err != nil || len(lacks) == 0 {
		return files, err
	}
	return files, missed(d.Root, lacks)
}

// Complete says whether the store has what a run needs to go on from a state; where it has not, with a *MissingError.
func Complete(ctx context.Context, blobs Blobs, start run.RunStart, s run.State) error {
	lacks, err := unfilled(ctx, blobs, start, s)
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

// unfilled gives the needs that the store cannot fill.
func unfilled(ctx context.Context, blobs Blobs, start run.RunStart, s run.State) ([]need, error) {
	var out []need
	for _, n := range needs(start, s) {
		raw, err := blobs.Get(ctx, n.digest)
		if lost(err) {
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
			if _, err := blobs.Get(ctx, m.digest); lost(err) {
				out = append(out, m)
			} else if err != nil {
				return nil, err
			}
		}
	}
	if s.Tree != nil {
		if _, err := blobs.Manifest(ctx, s.Tree.Digest); lost(err) {
			out = append(out, need{"the list of the workspace's files", s.Tree.Digest})
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// lost says that the store has no such blob, or not its bytes.
func lost(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) }

func needs(start run.RunStart, s run.State) []need {
	all := []need{{"the plan", start.Plan}, {"the definition", start.Definition}, {"the list of inputs", start.Inputs}}
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

// parts gives what a list in the store names.
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

// importAll puts every file of the directory into the store, but what is derived from events or belongs to other runs.
func (d Dir) importAll(ctx context.Context, blobs Blobs) (files int, err error) {
	skip := map[string]bool{d.Path(archivesDir): true, d.Path(logsDir): true, d.Path(tornDir): true}
	err = filepath.WalkDir(d.Root, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case skip[name]:
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := d.importOne(ctx, blobs, name, data); err != nil {
			return fmt.Errorf("store %s: %w", name, err)
		}
		files++
		return nil
	})
	return files, err
}

// importOne puts a file into the store. The manifest of a turn's tree stands for the lists of its folders; one that was changed stands for nothing, and
// what is lacking then is named.
func (d Dir) importOne(ctx context.Context, blobs Blobs, name string, data []byte) error {
	if filepath.Base(name) == "manifest.json" && filepath.Dir(filepath.Dir(name)) == d.Path(snapshotsDir) {
		if err := blobs.PutTree(ctx, data); !errors.Is(err, ErrDamaged) {
			return err
		}
		return nil
	}
	_, err := blobs.Put(ctx, data)
	return err
}
