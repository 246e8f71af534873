package git

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Mirror is a bare repository with the start commits of the runs of one source repository and their history, and
// nothing else of it: no branches, tags, stashes or reflogs. The ref refs/starts/<commit> retains each. It shares no
// objects with the source, so the collection of garbage there cannot break a run. Processes may share it.
type Mirror struct {
	git    git
	path   string
	format string // of objects: sha1 or sha256
	source *Repo
}

const startRefs = "refs/starts/"

// OpenMirror opens the mirror of a source repository in the state directory, and creates it where it is missing:
//
//	<state>/repositories/<base name>-<8 hex of the digest of the source's path>.git
//
// All checkouts of a repository share one.
func OpenMirror(ctx context.Context, stateDir string, source *Repo) (*Mirror, error) {
	format, err := source.git.line(ctx, "rev-parse", "--show-object-format")
	if err != nil {
		return nil, fmt.Errorf("open the mirror of %s: %w", source.root, err)
	}
	m := &Mirror{path: mirrorPath(stateDir, source.common, format), format: format, source: source}
	m.git = git{dir: m.path}.withEnv("GIT_DIR=" + m.path)
	if err := m.create(ctx); err != nil {
		return nil, fmt.Errorf("open the mirror of %s at %s: %w", source.root, m.path, err)
	}
	return m, nil
}

// mirrorPath derives the path from that of the git folder. Another repository at the same path may have another format
// of objects.
func mirrorPath(stateDir, common, format string) string {
	of := common
	if filepath.Base(of) == ".git" {
		of = filepath.Dir(of)
	}
	name := regexp.MustCompile(`[^A-Za-z0-9._-]`).ReplaceAllString(strings.TrimSuffix(filepath.Base(of), ".git"), "-")
	if format != "sha1" {
		of += "\x00" + format
	}
	return filepath.Join(stateDir, "repositories", fmt.Sprintf("%s-%.4x.git", name, sha256.Sum256([]byte(of))))
}

// create makes the folder of starts last: it is where a mirror is complete.
func (m *Mirror) create(ctx context.Context) error {
	starts := filepath.Join(m.path, startRefs)
	if _, err := os.Stat(starts); err == nil {
		return nil
	}
	if err := os.MkdirAll(m.path, 0o700); err != nil {
		return err
	}
	return m.locked(ctx, func() error {
		_, err := m.git.output(ctx, "init", "--quiet", "--bare", "--template=", "--object-format="+m.format)
		if err != nil {
			return err
		}
		return os.MkdirAll(starts, 0o755)
	})
}

func (m *Mirror) locked(ctx context.Context, do func() error) error {
	return withLock(ctx, filepath.Join(m.path, "passbook-lock"), do)
}

// Objects returns the folder of the objects, for the alternates of other repositories.
func (m *Mirror) Objects() string { return filepath.Join(m.path, "objects") }

// Fetch copies a commit of the source with its history and returns its id. A commit that is there costs one read.
// Git reads the objects in the source with the overridden configuration of [Open] or [OpenReceived], without the
// programs of a transport. Missing objects of a partial clone are fetched where [Open] permits it; otherwise they are
// an error.
func (m *Mirror) Fetch(ctx context.Context, commit string) (id string, err error) {
	if m.has(commit) {
		return commit, nil
	}
	if id, err = m.source.commit(ctx, commit); err != nil {
		return "", err
	}
	if err := m.locked(ctx, func() error { return m.fetch(ctx, id) }); err != nil {
		return "", fmt.Errorf("copy commit %s of %s to the mirror %s: %w", id, m.source.root, m.path, err)
	}
	return id, nil
}

// has reports whether a start commit is there. Its ref is written after all objects.
func (m *Mirror) has(commit string) bool {
	if !objectID.MatchString(commit) {
		return false
	}
	text, err := os.ReadFile(filepath.Join(m.path, startRefs, commit))
	return err == nil && strings.TrimSpace(string(text)) == commit
}

func (m *Mirror) fetch(ctx context.Context, id string) error {
	if m.has(id) { // by another process meanwhile
		return nil
	}
	if err := m.copyObjects(ctx, id); err != nil {
		return err
	}
	if _, err := m.git.output(ctx, "update-ref", startRefs+id, id); err != nil {
		return err
	}
	// each fetch adds a pack
	_, err := m.git.output(ctx, "-c", "gc.auto=6700", "-c", "gc.autoDetach=false", "-c", "gc.pruneExpire=never",
		"-c", "gc.packRefs=false", "gc", "--auto", "--quiet")
	return err
}

// copyObjects adds a pack with what the mirror lacks of a commit. On return it is on disk. Git in the source reads the
// objects of both and writes only into the mirror.
func (m *Mirror) copyObjects(ctx context.Context, id string) error {
	packs := filepath.Join(m.Objects(), "pack")
	left, err := filepath.Glob(filepath.Join(packs, "tmp_*")) // of an interrupted copy
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	if err != nil {
		return err
	}
	revisions := id + "\n"
	shallow, err := m.addShallow()
	if err != nil {
		return err
	}
	if !shallow { // in a shallow source the history of other commits may have objects that the mirror lacks
		starts, err := os.ReadDir(filepath.Join(m.path, startRefs))
		if err != nil {
			return err
		}
		for _, s := range starts {
			revisions += "^" + s.Name() + "\n"
		}
	}
	g := m.source.git.withEnv("GIT_OBJECT_DIRECTORY="+m.Objects(),
		"GIT_ALTERNATE_OBJECT_DIRECTORIES="+quoted(filepath.Join(m.source.common, "objects")))
	_, err = g.run(ctx, strings.NewReader(revisions), "pack-objects", "--revs", "--non-empty", "--delta-base-offset", "-q",
		filepath.Join(packs, "pack"))
	return err
}

// addShallow adds the commits at which the history of the source ends to those of the mirror.
func (m *Mirror) addShallow() (shallow bool, err error) {
	var all []string
	for _, folder := range []string{m.path, m.source.common} {
		text, err := os.ReadFile(filepath.Join(folder, "shallow"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		all = append(all, strings.Fields(string(text))...)
	}
	if len(all) == 0 {
		return false, nil
	}
	slices.Sort(all)
	text := strings.Join(slices.Compact(all), "\n") + "\n"
	return true, os.WriteFile(filepath.Join(m.path, "shallow"), []byte(text), 0o644)
}
