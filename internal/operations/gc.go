package operations

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Collection configures a garbage collection of a store.
type Collection struct {
	StateDir  string        // with the index of runs
	Roots     []string      // folders that are searched for run directories as well
	Forget    []string      // runs whose directories were deleted on purpose
	Removing  []string      // runs that count as removed, although their directories exist
	OlderThan time.Duration // younger objects stay: a run may be about to refer to them
	Now       time.Time
	Delete    bool // false: a dry run
}

// Collected is the result of a collection.
type Collected struct {
	Store   string    `json:"store"`
	Deleted bool      `json:"deleted"` // false: it was a dry run
	Before  time.Time `json:"before"`  // objects written later stay
	HeldBy  string    `json:"held_by"` // the open run that makes Before earlier than requested; empty: none
	Runs    []Holder  `json:"runs"`    // runs whose blobs are kept
	Unknown []Unknown `json:"unknown"` // runs in the store whose directories were not found
	Broken  []string  `json:"broken"`  // unreadable records, whose references are not known

	Kept    Amount        `json:"kept"`
	Fresh   Amount        `json:"fresh"` // unreferenced, and too young
	Garbage Amount        `json:"garbage"`
	Objects []GarbageItem `json:"objects"` // the garbage, biggest first
	Removed Amount        `json:"removed"`
}

// Holder is a run directory that was found.
type Holder struct {
	RunID     string `json:"run_id"`
	Directory string `json:"directory"`
}

// Unknown is a run in the store whose directory was not found.
type Unknown struct {
	RunID    string `json:"run_id"`
	Names    int    `json:"names"`    // of its calls and checkpoints, and its own
	Segments int    `json:"segments"` // to which no found journal leads
	Missing  string `json:"missing"`  // the recorded directory; empty: this machine has no record
	Blocks   bool   `json:"blocks"`   // its references are not known, so nothing is deleted
}

// Amount is a number of objects and their size.
type Amount struct {
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

func (a *Amount) add(o store.Object) {
	a.Objects++
	a.Bytes += o.Size
}

// GarbageItem is one unreferenced object.
type GarbageItem struct {
	Name    string    `json:"name"`
	Size    int64     `json:"size"`
	Written time.Time `json:"written"`
}

// Collect removes the objects that no run needs: it marks everything that the records of all run directories refer
// to, directly or indirectly, and sweeps the rest. If the directory of a run is not found, its calls, checkpoints and
// segments are kept and listed; for a run that this machine has recorded that is sufficient, see absent. The
// references of other missing runs, and of unreadable records, are not known. Then nothing is deleted, with a
// RefusedError, until they are found, removed or forgotten.
func Collect(ctx context.Context, s *store.Store, c Collection) (Collected, error) {
	g := &collector{Collection: c, store: s, known: map[string]bool{}, kin: map[string]bool{},
		removed: map[string]bool{},
		left:    map[string]bool{}, claims: map[string]run.Claim{}, unknown: map[string]*Unknown{},
		reached: newReached(s,
			map[store.Digest]store.Object{})}
	g.out = Collected{Store: s.URL(), Before: c.Now.Add(-c.OlderThan), Runs: []Holder{}, Unknown: []Unknown{},
		Broken: []string{}, Objects: []GarbageItem{}}
	if err := s.Walk(ctx, g.see); err != nil { // before the directories: later objects are fresh
		return g.out, err
	}
	for _, step := range []func(context.Context) error{g.registrations, g.directories, g.markNames, g.reached.follow,
		g.markSegments, g.absent} {
		if err := step(ctx); err != nil {
			return g.out, err
		}
	}
	garbage := g.sort()
	if err := g.mayForget(); err != nil {
		return g.out, err
	}
	if !c.Delete {
		return g.out, nil
	}
	if err := g.mayDelete(); err != nil {
		return g.out, err
	}
	return g.out, g.sweep(ctx, garbage)
}

// Freed returns how much less of the store is needed once runs are removed.
func Freed(ctx context.Context, s *store.Store, c Collection, runs []string) (Amount, error) {
	c.Delete, c.Removing = false, nil
	with, err := Collect(ctx, s, c)
	if err != nil {
		return Amount{}, err
	}
	c.Removing = runs
	without, err := Collect(ctx, s, c)
	return Amount{Objects: with.Kept.Objects - without.Kept.Objects, Bytes: with.Kept.Bytes - without.Kept.Bytes}, err
}

// collector runs one collection.
type collector struct {
	Collection
	store   *store.Store
	reached *reached
	names   []store.Object
	known   map[string]bool      // runs with a directory
	kin     map[string]bool      // their sources, whose calls and checkpoints may be needed
	removed map[string]bool      // runs that `starter remove` has removed
	left    map[string]bool      // runs with more in the store than the note of their removal
	claims  map[string]run.Claim // registrations in the store
	unknown map[string]*Unknown
	out     Collected
}

func (g *collector) see(o store.Object) error {
	if o.Digest != "" {
		g.reached.blobs[o.Digest] = o
	} else {
		g.names = append(g.names, o)
	}
	return nil
}

func (g *collector) broken(format string, args ...any) {
	g.out.Broken = append(g.out.Broken, fmt.Sprintf(format, args...))
}

// registrations reads which runs use the store and which were removed.
func (g *collector) registrations(ctx context.Context) error {
	for _, o := range g.names {
		if id, is := strings.CutPrefix(o.Name, removedPrefix); is {
			g.removed[id] = true
			continue
		}
		if id, of := runOf(o.Name); of {
			g.left[id] = true
		}
		id, is := strings.CutPrefix(o.Name, runsPrefix)
		if !is {
			continue
		}
		r, err := registration(ctx, g.store, id)
		if err == nil {
			g.claims[id] = r.Claim
		} else if !errors.Is(err, store.ErrMissing) {
			g.broken("%v", err)
		}
	}
	for id, claim := range g.claims {
		for _, of := range []string{claim.ThreadID, claim.SourceRun} {
			if of != id && !g.dropped(id) {
				g.kin[of] = true
			}
		}
	}
	return nil
}

// dropped reports whether a run is no longer needed.
func (g *collector) dropped(id string) bool {
	return g.removed[id] || slices.Contains(g.Forget, id) || slices.Contains(g.Removing, id)
}

// directories marks the references of the directories of all runs.
func (g *collector) directories(ctx context.Context) error {
	remembered, err := indexed(g.StateDir)
	if err != nil {
		return err
	}
	dirs := slices.Collect(maps.Values(remembered))
	for _, root := range g.Roots {
		found, err := runsBelow(root)
		if err != nil {
			return err
		}
		dirs = append(dirs, found...)
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		if err := ctx.Err(); err != nil {
			return err
		}
		g.directory(rundir.At(dir))
	}
	for id, dir := range remembered {
		if !g.known[id] && !g.dropped(id) {
			g.unknown[id] = &Unknown{RunID: id, Missing: dir}
		}
	}
	return nil
}

// directory marks the references of a run directory, and of the runs archived in it.
func (g *collector) directory(d rundir.Dir) {
	archived, err := d.Archived()
	if err != nil {
		g.broken("%v", err)
	}
	for _, a := range archived {
		g.directory(a)
	}
	claim, err := d.Claim()
	if errors.Is(err, rundir.ErrNoRun) || errors.Is(err, fs.ErrNotExist) {
		return // removed, or free again
	}
	if err == nil && slices.Contains(g.Removing, claim.RunID) {
		return
	}
	if err == nil {
		err = d.Records(func(_ string, r io.Reader) error { return g.reached.names(r) })
	}
	var now rundir.Now
	if err == nil {
		now, err = d.Now()
	}
	if err == nil {
		err = rundir.Lost(d, now.State)
	}
	if err != nil {
		if !g.dropped(claim.RunID) {
			g.broken("%v", err)
		}
		return
	}
	g.known[claim.RunID], g.kin[claim.ThreadID], g.kin[claim.SourceRun] = true, true, true
	g.out.Runs = append(g.out.Runs, Holder{RunID: claim.RunID, Directory: d.Root})
	g.hold(claim.RunID, claim.CreatedAt, now.State)
}

// hold keeps the objects written since the last event of an open run: its next events may refer to them, even if they
// wait for the disk for long.
func (g *collector) hold(id, claimed string, s run.State) {
	if s.TS == "" {
		s.TS = claimed // it has no events yet
	}
	if s.Status.Closed() && s.Status != "" || s.TS == "" {
		return
	}
	last, err := time.Parse(run.TimeFormat, s.TS)
	if err != nil {
		g.broken("run %s: the time of its last event: %v", id, err)
		return
	}
	if before := last.Add(-g.OlderThan); before.Before(g.out.Before) {
		g.out.Before, g.out.HeldBy = before, id
	}
}

// runsBelow finds the run directories below a folder. It does not descend into them.
func runsBelow(root string) (dirs []string, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil && path != root {
			return fmt.Errorf("search %s for runs: %w", root, err)
		}
		if err != nil || !e.IsDir() {
			return err
		}
		if rundir.At(path).Has(rundir.ClaimFile) {
			dirs = append(dirs, path)
			return fs.SkipDir
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return dirs, err
}

// markNames marks the references of calls. Calls of forgotten runs are garbage.
func (g *collector) markNames(ctx context.Context) error {
	for _, o := range g.names {
		id, of := runOf(o.Name)
		if of && g.forgotten(id) {
			continue
		}
		if of {
			g.met(id, func(u *Unknown) { u.Names++ })
		}
		raw, err := g.store.ReadName(ctx, o.Name)
		if errors.Is(err, store.ErrMissing) {
			continue
		}
		if err != nil {
			return err
		}
		if err := g.reached.names(strings.NewReader(string(raw))); err != nil {
			return err
		}
	}
	return nil
}

// absent handles runs whose recorded directories are not found. A completed run needs only what the store has under
// its name: its calls, its checkpoints, and the whole journal in segments. The journal of an open run may refer to
// more, all written since the run began.
func (g *collector) absent(ctx context.Context) error {
	for id, u := range g.unknown {
		if u.Blocks = u.Missing == ""; u.Blocks || u.Names == 0 && u.Segments == 0 {
			continue
		}
		marks, err := rundir.Marks(ctx, blobs.Of(g.store), id)
		if err != nil {
			return err
		}
		over := false
		if len(marks) > 0 {
			newest, err := rundir.LoadCheckpoint(ctx, blobs.Of(g.store), id, marks[len(marks)-1].ID)
			over = err == nil && newest.State.Status.Closed() && newest.State.Status != run.Interrupted
		}
		switch began := g.claims[id].CreatedAt; {
		case over:
		case began == "":
			u.Blocks = true
		default:
			g.hold(id, began, run.State{})
		}
	}
	return nil
}

// met counts an object of a run whose directory was not found.
func (g *collector) met(id string, count func(*Unknown)) {
	if g.known[id] || g.dropped(id) {
		return
	}
	if g.unknown[id] == nil {
		g.unknown[id] = &Unknown{RunID: id}
	}
	count(g.unknown[id])
}

// forgotten reports whether a run was declared unneeded. A source of other runs is needed as long as they exist.
func (g *collector) forgotten(id string) bool {
	return g.dropped(id) && !g.known[id] && !g.kin[id]
}

// runOf returns the run that a name belongs to.
func runOf(name string) (id string, is bool) {
	for _, prefix := range []string{"calls/", "checkpoints/", "late/", runsPrefix, removedPrefix} {
		if rest, has := strings.CutPrefix(name, prefix); has {
			id, _, _ = strings.Cut(rest, "/")
			return run.RootOf(id), true
		}
	}
	return "", false
}

// markSegments keeps every segment of a journal and its references: the history may lead to it even if no directory
// does.
func (g *collector) markSegments(ctx context.Context) error {
	for d := range g.reached.blobs {
		if g.reached.marked[d] {
			continue
		}
		id, err := g.segment(ctx, d)
		if err != nil {
			return err
		}
		if id == "" {
			continue
		}
		if g.left[id] = true; g.forgotten(id) {
			continue
		}
		g.met(id, func(u *Unknown) { u.Segments++ })
		g.reached.mark(d)
	}
	return g.reached.follow(ctx)
}

// segment returns the run whose events an unmarked blob contains.
func (g *collector) segment(ctx context.Context, d store.Digest) (string, error) {
	look := &heading{}
	err := g.store.Copy(ctx, d, look)
	if err != nil && !errors.Is(err, errPlain) && !errors.Is(err, store.ErrMissing) &&
		!errors.Is(err, store.ErrDamaged) {
		return "", err
	}
	return run.RootOf(rundir.SegmentOf(look.head)), nil
}

// heading reads the beginning of a blob.
type heading struct{ head []byte }

func (h *heading) Write(data []byte) (int, error) {
	h.head = append(h.head, data...)
	if len(h.head) >= headSize {
		return 0, errPlain
	}
	return len(data), nil
}
