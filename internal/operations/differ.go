package operations

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/redact"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Changed is what to do if a run was given something else than it is given now.
type Changed string

// Ways to handle a changed definition.
const (
	ChangedRefuse Changed = ""      // refuse, and name the choices
	ChangedAmend  Changed = "amend" // let the run adopt it
	ChangedFresh  Changed = "fresh" // archive the run and start another one
)

// Difference is a value that a run has otherwise, with its place in the new definition.
type Difference struct {
	Name    string `json:"name"` // budget.usd, task
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Old     string `json:"old"`
	New     string `json:"new"`
	Refused string `json:"refused,omitempty"` // why the run cannot adopt it; empty: it can
}

// String is the difference in one line, which begins with file:line.
func (d Difference) String() string {
	text := fmt.Sprintf("%s is %s, the run has %s", d.Name, shown(d.New), shown(d.Old))
	if d.File != "" {
		text = fmt.Sprintf("%s:%d: %s", d.File, d.Line, text)
	}
	if d.Refused != "" {
		text += " (" + d.Refused + ")"
	}
	return text
}

func shown(value string) string {
	if value == "" {
		return "unset"
	}
	return fmt.Sprintf("%q", value)
}

// DifferentError reports that a run was started with something else than it is given now. Nothing was changed.
type DifferentError struct {
	Dir, RunID  string
	Status      run.Status
	Live        bool
	Differences []Difference

	config, task, source, dirty string // as given
}

// Amendable reports whether the run can adopt all differences.
func (e *DifferentError) Amendable() bool {
	return e.Status != run.Done && e.Status != run.Halted &&
		!slices.ContainsFunc(e.Differences, func(d Difference) bool { return d.Refused != "" })
}

func (e *DifferentError) Error() string {
	lines := []string{fmt.Sprintf("run %s in %s is %s and has another definition; nothing was changed:", e.RunID, e.Dir,
		e.Status)}
	for _, d := range e.Differences {
		lines = append(lines, "  "+d.String())
	}
	lines = append(lines, "Choose one:")
	for _, c := range e.Choices() {
		lines = append(lines, "  "+c.Effect+": "+shell.Line(append([]string{"starter"}, c.Args...)...))
	}
	return strings.Join(lines, "\n")
}

// Choice is a command that resolves a difference.
type Choice struct {
	Args   []string // of starter
	Effect string
}

// Choices lists the commands to choose from.
func (e *DifferentError) Choices() []Choice {
	task := func(args ...string) []string {
		if e.task != "" {
			args = append(args, "--task", e.task)
		}
		return args
	}
	again := func(dir string, flags ...string) []string {
		args := []string{"run"}
		if e.config != "" {
			args = append(args, "--config", e.config)
		}
		if e.source != "" {
			args = append(args, "--source", e.source)
		}
		if e.dirty != "" {
			args = append(args, "--dirty", e.dirty)
		}
		return append(task(append(args, "--output-dir", dir)...), flags...)
	}
	fork := []string{"fork", e.Dir}
	if e.Status == run.Done {
		fork = append(fork, "--from", "CHECKPOINT")
	}
	if e.config != "" {
		fork = append(fork, "--config", e.config)
	}
	var all []Choice
	if e.Amendable() {
		all = append(all, Choice{again(e.Dir, "--amend"), "adopt the changes"})
	}
	all = append(all, Choice{task(fork...), "start a new run that keeps what is paid"})
	if e.task != "" && run.May(e.Status, run.FollowUp, run.Terms{}) == nil {
		all = append(all, Choice{task("run", "--follow-up", e.Dir), "start a new run that continues with the task"})
	}
	if !e.Live {
		all = append(all, Choice{again(e.Dir, "--fresh"), "archive this run and start again"})
	}
	return append(all, Choice{again("OTHER"), "start in another directory"})
}

// Differences compares what a run is given with what it has: the definition, its files, the task and the source. The
// run of the directory has begun.
func (o Operator) Differences(ctx context.Context, def Definition, dir rundir.Dir, claim run.Claim,
	s run.State) ([]Difference, error) {
	start, err := dir.First()
	if err != nil {
		return nil, err
	}
	has := givenTo{o: o, dir: dir, claim: claim, ref: s.PlanInForce(start), seq: 0}
	if s.Plan != nil {
		has.seq = s.Plan.Seq
	}
	all, err := has.differences(ctx, def, s)
	if err != nil {
		return nil, err
	}
	if task := o.Redact.Text(def.Task); task != "" && !redact.CanBe(s.Task, task) {
		all = append(all, Difference{Name: "task", Old: s.Task, New: task, Refused: "a run has one task"})
	}
	d, err := otherSource(ctx, def, start)
	if d != nil {
		all = append(all, *d)
	}
	if err != nil || def.Dirty == "" || start.Workspace == nil {
		return all, err
	}
	begun := givenTo{o: o, dir: dir, claim: claim, ref: start.PlanRef()}
	d, err = begun.otherDirty(ctx, def.Dirty)
	if d != nil {
		all = append(all, *d)
	}
	return all, err
}

// otherSource compares the source that a run is to work on.
func otherSource(ctx context.Context, def Definition, start run.RunStart) (*Difference, error) {
	if def.WorkOn == "" || start.Workspace == nil || def.Plan.Workspace == nil {
		return nil, nil
	}
	source, err := givenSource(ctx, def)
	if err != nil || source == start.Workspace.Source {
		return nil, err
	}
	return &Difference{Name: "source", Old: start.Workspace.Source, New: source, Refused: "a run has one source"}, nil
}

// givenSource returns the folder or the root of the repository that a run is to work on.
func givenSource(ctx context.Context, def Definition) (string, error) {
	source, err := sourceOf(def)
	if err != nil || def.Plan.Workspace.Git == "" {
		return source, err
	}
	r, err := git.Open(ctx, source)
	if err != nil {
		return "", &SourceError{Source: source, Why: err.Error()}
	}
	return r.Root(), nil
}

// otherDirty compares how the run took over uncommitted changes of its source.
func (g givenTo) otherDirty(ctx context.Context, dirty string) (*Difference, error) {
	old, err := g.version(ctx)
	if err != nil || old.Plan.Workspace == nil || old.Plan.Workspace.Dirty == dirty {
		return nil, err
	}
	return &Difference{Name: "dirty", Old: old.Plan.Workspace.Dirty, New: dirty,
		Refused: "a run takes its source over when it starts"}, nil
}

// givenTo reads what a run was given: from its directory, or from the store if a file there was changed.
type givenTo struct {
	o     Operator
	dir   rundir.Dir
	claim run.Claim
	ref   run.PlanRef
	seq   int64 // of the amendment; 0: the start
}

func (g givenTo) read(ctx context.Context, name, digest string) ([]byte, error) {
	raw, err := g.dir.ReadFile(rundir.InForceFile(g.seq, name))
	if err == nil && disk.Digest(raw) == digest {
		return raw, nil
	}
	s, err := g.o.openStore(ctx, g.claim)
	if err != nil {
		return nil, err
	}
	if raw, err = s.Get(ctx, store.Digest(digest)); err != nil {
		return nil, fmt.Errorf("read %s of run %s: %w", path.Base(name), g.claim.RunID, err)
	}
	return raw, nil
}

// version reads the plan and the list of its files.
func (g givenTo) version(ctx context.Context) (pipeline.Version, error) {
	return blobs.Version(g.ref, func(name, digest string) ([]byte, error) { return g.read(ctx, name, digest) })
}

func (g givenTo) differences(ctx context.Context, def Definition, s run.State) ([]Difference, error) {
	old, err := g.version(ctx)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, name := range def.files() {
		data, err := fs.ReadFile(def.Folder, name)
		if err != nil {
			return nil, err
		}
		files[name] = string(store.DigestOf(data))
	}
	def.Plan.KeepGiven(old.Plan)
	next := *def.Plan
	if string(store.DigestOf(def.Source)) == g.ref.Definition { // releases may expand the same text to other plans
		next = *old.Plan
		next.Inputs, next.Unattended = def.Plan.Inputs, def.Plan.Unattended
	}
	var all []Difference
	for _, d := range pipeline.Compare(old, pipeline.Version{Plan: &next, Files: files}, pipeline.Position(s.Next)) {
		found, err := g.located(ctx, def, d)
		if err != nil {
			return nil, err
		}
		again := slices.ContainsFunc(all, func(o Difference) bool { // limits that several roles inherit
			return o.Name == found.Name && o.File == found.File && o.Refused == found.Refused
		})
		if !again {
			all = append(all, found)
		}
	}
	return all, nil
}

// located finds the line of a difference: in the definition, or the first one that differs in a file.
func (g givenTo) located(ctx context.Context, def Definition, d pipeline.Difference) (Difference, error) {
	at, line := pipeline.Locate(def.Source, d.Path)
	out := Difference{Name: strings.Join(at, "."), File: def.Parsed.File, Line: line, Old: d.Old, New: d.New,
		Refused: d.Refused}
	if d.File == "" {
		return out, nil
	}
	was, err := g.read(ctx, path.Join(rundir.InputsDir, d.File), d.Old)
	if err != nil {
		return out, err
	}
	is, err := fs.ReadFile(def.Folder, d.File)
	if err != nil {
		return out, err
	}
	out.File = filepath.Join(filepath.Dir(def.Parsed.File), filepath.FromSlash(d.File))
	out.Line, out.Old, out.New = firstOtherLine(was, is)
	return out, nil
}

// firstOtherLine returns the first line in which two texts differ, from 1.
func firstOtherLine(was, is []byte) (n int, old, next string) {
	a, b := bytes.Split(was, []byte("\n")), bytes.Split(is, []byte("\n"))
	for n < len(a) && n < len(b) && bytes.Equal(a[n], b[n]) {
		n++
	}
	line := func(all [][]byte) string {
		if n < len(all) {
			return run.Cut(strings.ToValidUTF8(string(all[n]), "�"), maxShownLine)
		}
		return ""
	}
	return n + 1, line(a), line(b)
}

// maxShownLine is the maximum length of a line of a file in a message.
const maxShownLine = 100
