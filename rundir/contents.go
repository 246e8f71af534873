package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/run"
)

// Contents is what lies in a run directory.
type Contents struct {
	Own      []string // what the run has made, in the order in which [Dir.Remove] removes it
	Files    int      // in Own; symbolic links count, and what they lead to does not
	Bytes    int64
	Foreign  []string // what the run has not made: it stays
	Archived []string // folders of runs that were archived here: they stay too
}

// last are the files from which what else a run has made is known. They are removed last, and the claim after all others: a removal that was cut off
// finds them.
var last = []string{MetaFile, EventsFile, LockFile, ClaimFile}

// Contents tells what the run has made in its directory from everything else there. It looks at the names in the directory and in _orchestrator; a
// folder that the run has made is its own with all that is in it. A link in the place of one is foreign. Nothing is written.
func (d Dir) Contents() (Contents, error) {
	c := Contents{Foreign: []string{}}
	top, err := os.ReadDir(d.Root)
	if err != nil {
		return c, fmt.Errorf("list %s: %w", d.Root, err)
	}
	if d.isArchived() {
		c.sortArchived(d, top)
	} else if err := c.sortAll(d, top); err != nil {
		return c, err
	}
	slices.SortStableFunc(c.Own, func(a, b string) int { return slices.Index(last, a) - slices.Index(last, b) })
	for _, name := range c.Own {
		if err := c.measure(d.Path(name)); err != nil {
			return c, err
		}
	}
	return c, nil
}

// isArchived says that the directory is one that [Dir.Archive] has made.
func (d Dir) isArchived() bool {
	return strings.HasSuffix(filepath.ToSlash(filepath.Dir(d.Root)), "/"+archivesDir)
}

// sortArchived sorts what lies in the directory of an archived run: what was in _orchestrator is beside the rest there.
func (c *Contents) sortArchived(d Dir, top []fs.DirEntry) {
	o := d.ownNames()
	for _, e := range top {
		if name := e.Name(); o.has(d, name, e) || o.has(d, path.Join(orchestrator, name), e) {
			c.Own = append(c.Own, name)
		} else {
			c.Foreign = append(c.Foreign, name)
		}
	}
}

// sortAll sorts what lies in the directory and in _orchestrator.
func (c *Contents) sortAll(d Dir, top []fs.DirEntry) error {
	o := d.ownNames()
	inner, err := os.ReadDir(d.Path(orchestrator))
	if fi, lerr := os.Lstat(d.Path(orchestrator)); lerr == nil && !fi.IsDir() {
		inner = nil // a link: it is foreign as a whole
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list %s: %w", d.Path(orchestrator), err)
	}
	for _, e := range top {
		if e.Name() != orchestrator || !e.IsDir() {
			c.sort(d, o, e.Name(), e)
		}
	}
	for _, e := range inner {
		name := path.Join(orchestrator, e.Name())
		if name != archivesDir || !e.IsDir() {
			c.sort(d, o, name, e)
		} else if err := c.archives(d); err != nil {
			return err
		}
	}
	return nil
}

// archives names the runs that were archived here, and what else is beside them. Empty, the folder is the run's.
func (c *Contents) archives(d Dir) error {
	entries, err := os.ReadDir(d.Path(archivesDir))
	if err != nil {
		return fmt.Errorf("list %s: %w", d.Path(archivesDir), err)
	}
	for _, e := range entries {
		name := path.Join(archivesDir, e.Name())
		if _, err := At(d.Path(name)).Claim(); err == nil {
			c.Archived = append(c.Archived, name)
		} else {
			c.Foreign = append(c.Foreign, name)
		}
	}
	if len(entries) == 0 {
		c.Own = append(c.Own, archivesDir)
	}
	return nil
}

// sort puts one entry where it belongs.
func (c *Contents) sort(d Dir, o ownNames, name string, e fs.DirEntry) {
	switch {
	case o.has(d, name, e):
		c.Own = append(c.Own, name)
	default:
		c.Foreign = append(c.Foreign, name)
	}
}

func (c *Contents) measure(root string) error {
	return filepath.WalkDir(root, func(_ string, e fs.DirEntry, err error) error {
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

// asideEnd is the end of the name of evidence that a revert has set aside.
var asideEnd = regexp.MustCompile(`~\d+$`)

// ownNames are the names that a run gives to what it makes.
type ownNames struct {
	files, folders []string
}

// ownNames reads from the records how the run names what it makes. What cannot be read is not known, and stays.
func (d Dir) ownNames() ownNames {
	o := ownNames{
		files:   append([]string{TracesFile, ProvenanceFile, ResultFile, PromotionsFile, DeliveryPatch, DefinitionFile, PlanFile, InputsFile, PolicyFile, StateFile, OwnerFile}, last...),
		folders: []string{WorkspaceDir, snapshotsDir, repairsDir, decisionsDir, InputsDir, passesDir, orchestrator + "/steps", checkpointsDir, tornDir, logsDir, editsDir},
	}
	events, _, err := d.Events()
	if err != nil {
		return o
	}
	for _, e := range events {
		if e.Kind == run.KindRunStart {
			o.start(e)
		}
		var made struct {
			Dir  string `json:"dir"`
			Redo int    `json:"redo"`
		}
		e.Decode(&made)
		if made.Dir == "" {
			continue
		}
		first, _, _ := strings.Cut(made.Dir+redone(made.Redo), "/")
		if !slices.Contains(o.folders, orchestrator+"/"+first) {
			o.folders = append(o.folders, orchestrator+"/"+first)
		}
	}
	return o
}

// start adds what the run says at its start.
func (o *ownNames) start(e run.Event) {
	var p run.RunStart
	e.Decode(&p)
	if p.Artifact != nil {
		o.files = append(o.files, p.Artifact.File)
	}
	for _, n := range p.Notes {
		o.files = append(o.files, noteFile(n.File))
	}
}

// has says whether the run has made an entry. A file is a file and a folder a folder: a link is the run's only where it makes one.
func (o ownNames) has(d Dir, name string, e fs.DirEntry) bool {
	base := path.Base(name)
	switch {
	case e.Type() == fs.ModeSymlink:
		return name == SpendFile
	case e.IsDir():
		return slices.Contains(o.folders, asideEnd.ReplaceAllString(name, ""))
	case !e.Type().IsRegular():
		return false
	case name == ".gitignore":
		raw, err := os.ReadFile(d.Path(name))
		return err == nil && bytes.Equal(raw, []byte(HiddenFromGit))
	}
	return slices.Contains(o.files, name) || durable.IsTemp(base)
}
