package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/run"
)

// Contents lists what a run directory contains.
type Contents struct {
	Own      []string // files of the run, in the order of removal by [Remove]
	Files    int      // files in Own; symbolic links count, their targets do not
	Bytes    int64
	Foreign  []string // files that the run did not create; they stay
	Archived []string // folders of archived runs; they stay
}

// last are the files that identify the other files of a run. They are removed last, and the claim after all others, so
// that an interrupted removal can continue.
var last = []string{MetaFile, EventsFile, LockFile, ClaimFile}

// ReadContents distinguishes what the run created in its directory from everything else. It uses the names in the
// directory and in _orchestrator; a folder that the run created belongs to it with all its contents. A link in place of
// such a folder is foreign. Nothing is written.
func ReadContents(d Dir) (Contents, error) {
	c := Contents{Foreign: []string{}}
	top, err := d.ReadDir(".")
	if err != nil {
		return c, fmt.Errorf("list %s: %w", d.Root, err)
	}
	if isArchived(d) {
		c.sortArchived(d, top)
	} else if err := c.sortAll(d, top); err != nil {
		return c, err
	}
	slices.SortStableFunc(c.Own, func(a, b string) int { return slices.Index(last, a) - slices.Index(last, b) })
	for _, name := range c.Own {
		if err := c.measure(d, name); err != nil {
			return c, err
		}
	}
	return c, nil
}

// isArchived reports whether [Archive] created the directory.
func isArchived(d Dir) bool {
	return strings.HasSuffix(filepath.ToSlash(filepath.Dir(d.Root)), "/"+ArchivesDir)
}

// sortArchived sorts the contents of an archive, in which the former contents of _orchestrator are at the top level.
func (c *Contents) sortArchived(d Dir, top []fs.DirEntry) {
	o := namesOf(d)
	for _, e := range top {
		if name := e.Name(); o.has(d, name, e) || o.has(d, path.Join(Orchestrator, name), e) {
			c.Own = append(c.Own, name)
		} else {
			c.Foreign = append(c.Foreign, name)
		}
	}
}

// sortAll sorts the contents of the directory and of _orchestrator.
func (c *Contents) sortAll(d Dir, top []fs.DirEntry) error {
	o := namesOf(d)
	inner, err := d.ReadDir(Orchestrator)
	if fi, lerr := d.Lstat(Orchestrator); lerr == nil && !fi.IsDir() {
		inner = nil // a link is foreign as a whole
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list %s: %w", d.Path(Orchestrator), err)
	}
	for _, e := range top {
		if e.Name() != Orchestrator || !e.IsDir() {
			c.sort(d, o, e.Name(), e)
		}
	}
	for _, e := range inner {
		name := path.Join(Orchestrator, e.Name())
		if name != ArchivesDir || !e.IsDir() {
			c.sort(d, o, name, e)
		} else if err := c.archives(d); err != nil {
			return err
		}
	}
	return nil
}

// archives lists the archived runs, and what else is beside them. An empty folder belongs to the run.
func (c *Contents) archives(d Dir) error {
	entries, err := d.ReadDir(ArchivesDir)
	if err != nil {
		return fmt.Errorf("list %s: %w", d.Path(ArchivesDir), err)
	}
	for _, e := range entries {
		name := path.Join(ArchivesDir, e.Name())
		if _, err := At(d.Path(name)).Claim(); err == nil && e.IsDir() {
			c.Archived = append(c.Archived, name)
		} else {
			c.Foreign = append(c.Foreign, name)
		}
	}
	if len(entries) == 0 {
		c.Own = append(c.Own, ArchivesDir)
	}
	return nil
}

// sort adds one entry to the list to which it belongs.
func (c *Contents) sort(d Dir, o ownNames, name string, e fs.DirEntry) {
	if o.has(d, name, e) {
		c.Own = append(c.Own, name)
	} else {
		c.Foreign = append(c.Foreign, name)
	}
}

// measure counts the files of an entry. A link is not followed: its target can be missing, and is counted elsewhere.
func (c *Contents) measure(d Dir, root string) error {
	if fi, err := d.Lstat(root); err != nil {
		return err
	} else if fi.Mode().Type() == fs.ModeSymlink {
		c.Files++
		return nil
	}
	return d.Walk(root, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		c.Files++
		if fi.Mode().IsRegular() {
			c.Bytes += fi.Size()
		}
		return nil
	})
}

// supersededSuffix is the end of the name of superseded evidence.
var supersededSuffix = lazyregexp.New(`~\d+$`)

// ownNames are the names of the files and folders that a run creates.
type ownNames struct {
	files, folders []string
}

// namesOf returns the names of the files that follow from the events, and of those that every run may have. Without
// readable events the others are unknown, so they stay.
func namesOf(d Dir) ownNames {
	o := ownNames{
		files: append([]string{TracesFile, ProvenanceFile, ResultFile, PromotionsFile, ReportFile,
			DeliveryPatch, DefinitionFile, PlanFile, InputsFile, PolicyFile,
			StateFile, OwnerFile}, last...),
		folders: []string{SnapshotsDir, DecisionsDir, run.LanesDir,
			InputsDir, PassesDir, Orchestrator + "/steps", CheckpointsDir, TornDir,
			LogsDir, EditsDir},
	}
	all, err := ReadStream(d, EventsFile, 0)
	if err != nil {
		return o
	}
	f, err := d.folded(all.Lines)
	if err != nil {
		return o
	}
	for name, file := range f.Files {
		below, inner := strings.CutPrefix(name, Orchestrator+"/")
		first, _, nested := strings.Cut(below, "/")
		if !nested {
			o.files = append(o.files, name)
		} else if inner && file.Role != Edited { // a folder of a user may contain an artifact
			o.folders = append(o.folders, Orchestrator+"/"+supersededSuffix.ReplaceAllString(first, ""))
		}
	}
	slices.Sort(o.folders)
	o.folders = slices.Compact(o.folders)
	return o
}

// has reports whether the run created an entry. The type counts too: a link is the run's only where the run creates a
// link.
func (o ownNames) has(d Dir, name string, e fs.DirEntry) bool {
	base := path.Base(name)
	switch {
	case e.Type() == fs.ModeSymlink:
		return name == SpendFile || name == WorkspaceDir
	case e.IsDir():
		return slices.Contains(o.folders, supersededSuffix.ReplaceAllString(name, ""))
	case !e.Type().IsRegular():
		return false
	case name == ".gitignore":
		raw, err := d.ReadFile(name)
		return err == nil && bytes.Equal(raw, []byte(HiddenFromGit))
	}
	return slices.Contains(o.files, name) || disk.IsTemp(base)
}
