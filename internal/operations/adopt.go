package operations

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"path/filepath"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// Adoption is the conversation that the first call of a run continues.
type Adoption struct {
	Program     sessions.Program
	ID          string
	WhenLimited bool // the run begins with the wait for the limit that ended it
}

func (a Adoption) refused(format string, args ...any) error {
	return &SourceError{Source: fmt.Sprintf("conversation %s of %s", a.ID, a.Program.Name), Why: fmt.Errorf(format, args...).Error()}
}

// RunDir returns the directory of the run that adopts the conversation: always the same one.
func (a Adoption) RunDir(runRoot, source string) string {
	name := fmt.Sprintf("adopted-%s-%.8s", a.Program.Name, disk.Digest([]byte(a.ID)))
	return runDir(runRoot, source, "", name)
}

// adopter is the role whose call continues a conversation.
type adopter struct {
	stage string
	step  pipeline.PlanStep
	role  pipeline.Role
}

// adopter returns the role that makes the first call of a run. The error describes why it cannot continue the
// conversation.
func (d Definition) adopter() (adopter, error) {
	a, name := d.Adopt, d.Plan.Pipeline
	for _, stage := range d.Plan.Stages {
		for _, step := range stage.RoundAt(1).Steps {
			if step.Kind != pipeline.KindRole && step.Kind != pipeline.KindTogether {
				continue
			}
			if stage.Lanes != nil || step.Kind == pipeline.KindTogether {
				return adopter{}, a.refused("several roles or lanes begin at once in pipeline %s, stage %s, and only one call "+
					"can continue it: let a single role begin", name, stage.Name)
			}
			role, _ := d.Plan.Role(step.Role)
			ag, _ := d.Plan.Agent(role.Agent)
			kind, _ := adapter.Find(ag.Reply)
			switch {
			case kind.Program != a.Program.Name:
				return adopter{}, a.refused("role %s, which begins in pipeline %s, is not of %s: let its agent be %[3]s, or "+
					"leave --then out", role.Name, name, a.Program.Name)
			case !ag.Sessions():
				return adopter{}, a.refused("the command of role %s in pipeline %s chooses its session itself: leave its options "+
					"for sessions out", role.Name, name)
			}
			return adopter{stage.Name, step, role}, nil
		}
	}
	return adopter{}, a.refused("pipeline %s has no role in its stages that could continue it", name)
}

// CheckAdoption reports why no run of a definition can continue its conversation.
func (d Definition) CheckAdoption() error {
	if w := d.Plan.Workspace; w == nil || w.Git == "" || len(d.Plan.Projects) > 0 {
		return d.Adopt.refused("pipeline %s works on no copy of a git checkout, without which the model would believe in changes "+
			"that are not there: write workspace: {git: worktree} into it, or leave --then out", d.Plan.Pipeline)
	}
	_, err := d.adopter()
	return err
}

// copyConversation copies the conversation for a run, before the files that belong to it; nil: the run adopts none.
func (d Definition) copyConversation(state, runID string) (*sessions.Adoption, error) {
	if d.Adopt == nil {
		return nil, nil
	}
	kept, err := d.Adopt.Program.Adopt(state, runID, d.Adopt.ID)
	if err != nil {
		return nil, d.Adopt.refused("%w", err)
	}
	return &kept, nil
}

// adopted describes the adoption for the journal, when the files of the checkout are copied too. Conversation and files
// are a pair: if the conversation was continued meanwhile, nothing is started.
func (o Operator) adopted(ctx context.Context, def Definition, claim run.Claim, kept *sessions.Adoption,
	w *run.Workspace) (*run.Adopted, error) {
	if kept == nil {
		return nil, nil
	}
	same, err := def.Adopt.Program.Unchanged(*kept)
	if err != nil {
		return nil, err
	}
	if !same {
		return nil, def.Adopt.refused("it was continued while it was copied: end it there, and adopt it again")
	}
	by, err := def.adopter()
	if err != nil {
		return nil, err
	}
	brief, err := adoptionBrief(ctx, kept, w.Source)
	if err != nil {
		return nil, err
	}
	s, err := openStoreOn(ctx, disk.Disk{}, claim.Store)
	if err != nil {
		return nil, err
	}
	blob, err := blobs.Put(ctx, s, []byte(o.Redact.Text(brief)))
	if err != nil {
		return nil, err
	}
	out := run.Adopted{Program: kept.Program, Session: kept.ID, Digest: kept.Digest, Host: o.Host, File: kept.File,
		Folder: kept.Folder, Phase: by.stage, Role: by.role.Name, Ended: kept.Ended, Before: o.spentBefore(def, by, kept), Brief: blob}
	if !kept.At.IsZero() {
		out.Last = run.Time(kept.At)
	}
	if def.Adopt.WhenLimited {
		out.Limited = def.waitFor(by, kept, time.Now())
	}
	return &out, nil
}

// spentBefore is what a conversation had cost: what its program recorded, and the tokens since.
func (o Operator) spentBefore(def Definition, by adopter, kept *sessions.Adoption) run.Spend {
	ag, _ := def.Plan.Agent(by.role.Agent)
	prices := agent.Prices{Known: price.With(o.Settings.Prices), Model: adapter.Model(ag.Run)}
	if p := ag.Price; p != nil {
		own := price.Of(p.Input, p.Output, p.CacheRead, p.CacheWrite)
		prices.Own = &own
	}
	s := prices.Spend(kept.Usage)
	if len(kept.Usage) == 0 {
		s = run.Spend{Known: run.CostExact}
	}
	s.USD = run.Cents(s.USD + kept.USD)
	if s.Known == run.CostUnknown && s.USD > 0 || kept.Unknown {
		s.Known = run.CostAtLeast
	}
	return s
}

// longestReset is the longest time until a reset that is believed: that of a monthly limit.
const longestReset = 31 * 24 * time.Hour

// longestUnknown is the longest time for which a limit without a reset is expected to hold: that of a weekly one.
const longestUnknown = 7 * 24 * time.Hour

// Holds reports whether the limit that ended a conversation may still hold.
func Holds(c sessions.Conversation, now time.Time) bool {
	if until := c.Limit.Until; !until.IsZero() {
		return c.Ended == run.EndedByLimit && until.After(now)
	}
	return c.Ended == run.EndedByLimit && now.Sub(c.At) < longestUnknown
}

// waitFor returns the wait for the limit that ended a conversation; nil: it holds no longer, or there is none.
func (d Definition) waitFor(by adopter, kept *sessions.Adoption, now time.Time) *run.LimitedCall {
	if !Holds(kept.Conversation, now) {
		return nil
	}
	limit := run.Limit{Kind: kept.Limit.Kind, Agent: kept.Program}
	reset := max(0, kept.Limit.Until.Sub(now))
	if reset > longestReset {
		reset = 0
	}
	if reset > 0 {
		limit.Reset = run.Time(kept.Limit.Until)
	}
	l := d.Plan.RoleLimits(by.step, by.role.Name)
	wait := l.LimitWait(limit.Kind.Temporary(), 1, reset, rand.Float64(), d.Plan.TimeScale)
	return &run.LimitedCall{Limit: limit, Until: run.Time(now.Add(wait)), Since: run.Time(now), N: 1,
		WaitedMS: wait.Milliseconds()}
}

// mostChanged is the number of changed files that a prompt names.
const mostChanged = 50

// adoptionBrief is what the prompt of the call that continues a conversation contains about it.
func adoptionBrief(ctx context.Context, kept *sessions.Adoption, source string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Your conversation continues\n\nYou worked on this before, in a conversation that %s. "+
		"It continues here.\n\n- Your working directory has the files of %s as they are now, also those that are not "+
		"committed or not tracked. That folder is no longer yours: use only paths in your working directory, also where "+
		"earlier messages name others.\n", kept.Ended.Text(), named(source))
	if rel, err := filepath.Rel(source, kept.Folder); err == nil && rel != "." && filepath.IsLocal(rel) {
		fmt.Fprintf(&b, "- The conversation was held in its folder %s.\n", named(rel))
	}
	if kept.Damaged > 0 {
		fmt.Fprintf(&b, "- %s of the conversation could not be read, and are missing.\n", run.Plural(kept.Damaged, "line"))
	}
	if kept.At.IsZero() {
		return b.String(), nil
	}
	r, err := git.Open(ctx, source)
	if err != nil {
		return "", err
	}
	changed, err := r.ChangedSince(ctx, kept.At)
	if err != nil {
		return "", err
	}
	if len(changed) == 0 {
		return b.String(), nil
	}
	fmt.Fprintf(&b, "- These files have changed since its last entry (%s), by you, by a tool that you had called, or by "+
		"another person. Read them again before you rely on what you remember:\n", run.Time(kept.At))
	for _, path := range changed[:min(len(changed), mostChanged)] {
		fmt.Fprintf(&b, "  - %s\n", named(path))
	}
	if more := len(changed) - mostChanged; more > 0 {
		fmt.Fprintf(&b, "  - and %d more\n", more)
	}
	return b.String(), nil
}

// named quotes a path for a prompt.
func named(path string) string {
	return "`" + strings.ReplaceAll(run.OneLine(sessions.Plain(path)), "`", "'") + "`"
}

// FindConversation returns the conversation with an id, and the adoption of it.
func FindConversation(id string, environ []string) (c sessions.Conversation, a Adoption, err error) {
	for _, name := range sessions.AdoptablePrograms {
		a = Adoption{Program: sessions.Program{Name: name, Environ: environ}, ID: id}
		c, err = a.Program.Find(id)
		if errors.Is(err, sessions.ErrNone) {
			continue
		}
		if err != nil {
			err = a.refused("%w", err)
		}
		return c, a, err
	}
	return c, a, &SourceError{Source: "conversation " + run.OneLine(sessions.Plain(id)),
		Why: "no conversation of claude or codex on this host has this id: starter adopt lists those of this repository"}
}

// OfRepository reports whether a folder is in the checkout with a root, and in none inside it. The folder may no longer
// exist.
func OfRepository(ctx context.Context, root, folder string) bool {
	path, err := resolved(folder)
	if err != nil || !filepath.IsAbs(folder) {
		return false
	}
	if rel, err := filepath.Rel(root, path); err != nil || !filepath.IsLocal(rel) {
		return false
	}
	r, err := git.Open(ctx, path)
	if errors.Is(err, git.ErrUnborn) {
		return false
	}
	return err != nil || r.Root() == root
}

// CheckPlace reports why a conversation cannot be adopted in the checkout with a root: it belongs to another one, or a
// process continues it.
func (a Adoption) CheckPlace(ctx context.Context, c sessions.Conversation, root string) error {
	if !OfRepository(ctx, root, c.Folder) {
		return a.refused("it was held in %s, which is not in the repository %s: adopt it there", run.OneLine(sessions.Plain(c.Folder)), root)
	}
	holder, err := a.Program.OpenIn(c)
	if err != nil {
		return err
	}
	if holder != nil {
		return a.refused("it is still open (process %d of %s): end it there first, so that only one of the two "+
			"continues it", holder.PID, a.Program.Name)
	}
	return nil
}
