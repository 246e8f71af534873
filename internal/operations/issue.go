package operations

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/forge"
	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Forge is the repository of a run's source on its forge, with the operator's token. It is nil for other runs.
type Forge struct {
	*forge.Client
	ref    run.ForgeRef
	remote git.Remote
}

// OpenForge finds the repository of a folder on the forge of the settings.
func OpenForge(ctx context.Context, settings config.Settings, environ []string, folder string) (*Forge, error) {
	address := settings.Forge.URL
	source, err := git.Open(ctx, folder)
	if err != nil {
		return nil, err
	}
	origin, err := source.RemoteURL(ctx)
	if err != nil {
		return nil, err
	}
	repo, err := forge.Parse(address, origin)
	if err != nil {
		return nil, fmt.Errorf("find the repository of %s on its forge: %w", source.Root(), err)
	}
	token, err := forge.Token(ctx, address, environ)
	if err != nil {
		return nil, err
	}
	c, err := forge.New(forge.Options{Forge: address, Token: token, Repo: repo})
	if err != nil {
		return nil, err
	}
	return &Forge{c, run.ForgeRef{URL: address, Repo: repo.String()}, git.Remote{URL: forge.Remote(address, repo), Token: token}}, nil
}

// OnForge has a run start at the tip of the base of its remote, or at ref, and work on an issue; empty: on none.
func (d *Definition) OnForge(ctx context.Context, settings config.Settings, environ []string, issue, ref string) error {
	folder := cmp.Or(d.WorkOn, d.Home, ".")
	if w := d.Plan.Workspace; w != nil {
		found, err := sourceOf(*d)
		if err != nil {
			return err
		}
		folder = found
	}
	f, err := OpenForge(ctx, settings, environ, folder)
	if err != nil {
		return err
	}
	if p := d.Plan.Delivery; p.OpensPull() {
		f.ref.Base = p.Base
	}
	if f.ref.Base == "" {
		if f.ref.Base, err = f.DefaultBranch(ctx); err != nil {
			return err
		}
	}
	f.ref.From = ref
	if a := d.Plan.After; a != nil {
		f.ref.After = &run.After{Max: a.Max, WaitMS: a.Wait.Milliseconds(), Only: a.Only}
	}
	d.Forge = f
	if issue == "" {
		return nil
	}
	number, err := f.issueNumber(issue)
	if err != nil {
		return err
	}
	return d.takeIssue(ctx, settings, number)
}

// issueNumber reads the number or the address of an issue.
func (f *Forge) issueNumber(text string) (int, error) {
	number := strings.TrimPrefix(text, "#")
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		rest, ok := strings.CutPrefix(strings.TrimSuffix(u.Path, "/"), "/"+f.ref.Repo+"/issues/")
		if base := f.ref.URL; !ok || u.Scheme+"://"+u.Host != base {
			return 0, fmt.Errorf("%s is no issue of %s, the repository of the source", text, f.ref.Repo)
		}
		number = rest
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%q is no issue: name its number or its address", text)
	}
	return n, nil
}

// Sizes of what a task has of an issue: it is part of the state of the run.
const (
	maxIssueBody    = 4000
	maxIssueComment = 800
	maxIssueTask    = 7500
)

// takeIssue makes an issue the task of a run: its text, and the comments of accounts with write access, as data.
func (d *Definition) takeIssue(ctx context.Context, settings config.Settings, number int) error {
	f := d.Forge
	i, err := f.Issue(ctx, number)
	if err != nil {
		return err
	}
	if !i.Open {
		return fmt.Errorf("issue #%d of %s is closed", number, f.ref.Repo)
	}
	_, trusted, err := f.MayWrite(ctx, i.Author)
	if err != nil {
		return err
	}
	comments, err := f.Comments(ctx, number, forge.OnIssue, time.Time{})
	if err != nil {
		return err
	}
	ref := &run.IssueRef{Number: number, URL: i.URL, Title: run.Cut(run.OneLine(i.Title), 200), Author: i.Author, Trusted: trusted}
	body := run.Quoted(fmt.Sprintf("issue #%d by %s (%s)", number, i.Author, i.URL), run.Cut(i.Body, maxIssueBody))
	task := fmt.Sprintf("Resolve issue #%d of %s: %q\n\n%s", number, f.ref.Repo, ref.Title, body)
	for _, c := range comments {
		ref.Read = max(ref.Read, c.ID)
		_, may, err := f.MayWrite(ctx, c.Author)
		if err != nil {
			return err
		}
		text := "\n\n" + run.Quoted("comment by "+c.Author, run.Cut(c.Body, maxIssueComment))
		if may && !forge.IsOwn(c.Body) && len(task)+len(text) < maxIssueTask {
			task += text
		}
	}
	f.ref.Issue = ref
	if d.Task == "" {
		d.Task = task
	} else {
		d.Task += "\n\n" + task
	}
	d.issue = map[string]string{"issue.number": strconv.Itoa(number), "issue.title": ref.Title, "issue.body": body,
		"issue.url": i.URL}
	if trusted {
		return nil
	}
	if s := settings.Sandbox; s.Mode == sandbox.None || slices.Contains(s.Network, sandbox.HostNetwork) {
		return fmt.Errorf("issue #%d is by %s, who has no write access to %s, and the settings of this host do not bound what agents "+
			"reach (sandbox.mode, sandbox.network): have an account with write access open it", number, i.Author, f.ref.Repo)
	}
	d.Plan.Restrict(sandbox.ModelsAndRegistries)
	d.Warnings = append(d.Warnings, fmt.Sprintf("issue #%d is by %s, who has no write access: calls reach the APIs of models and "+
		"package registries only, and get no files of %s", number, i.Author, git.IncludeFile))
	return nil
}

// IssueDir names the directory of the run of an issue; empty: it has none.
func (d Definition) IssueDir() string {
	if d.Forge == nil || d.Forge.ref.Issue == nil {
		return ""
	}
	return fmt.Sprintf("%s-issue-%d", d.Plan.Pipeline, d.Forge.ref.Issue.Number)
}

// runID returns the id of a new run. An issue has one run of a pipeline, whatever starts it, and wherever.
func (d Definition) runID() (uuid.UUID, error) {
	if d.IssueDir() == "" || d.Changed == ChangedFresh {
		return uuid.NewRandom()
	}
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte(d.Forge.ref.Issue.URL+"#"+d.Plan.Pipeline)), nil
}

// forgeRef is what the journal has of the forge; nil: nothing.
func (d Definition) forgeRef() *run.ForgeRef {
	if d.Forge == nil {
		return nil
	}
	ref := d.Forge.ref
	return &ref
}

// start returns the commit at which a run on a forge starts.
func (f *Forge) start(ctx context.Context, r *git.Repo) (string, error) {
	if f.ref.From != "" {
		return r.Commit(ctx, f.ref.From)
	}
	tip, err := r.FetchTip(ctx, f.remote, f.ref.Base)
	if err == nil && tip == "" {
		err = &SourceError{Source: r.Root(), Why: fmt.Sprintf("its remote has no branch %s", f.ref.Base)}
	}
	return tip, err
}

// ready lists the open issues with a label that an account with write access has set.
func (f *Forge) ready(ctx context.Context, label string) (all []forge.Issue, refused []string, err error) {
	found, err := f.Labelled(ctx, label)
	for _, i := range found {
		by, err := f.LabelledBy(ctx, i.Number, label)
		if err != nil {
			return nil, nil, err
		}
		may := false
		if by != "" {
			if _, may, err = f.MayWrite(ctx, by); err != nil {
				return nil, nil, err
			}
		}
		if may {
			all = append(all, i)
		} else {
			refused = append(refused, fmt.Sprintf("#%d: %s, who set the label, has no write access", i.Number, cmp.Or(by, "an unknown account")))
		}
	}
	return all, refused, err
}

// Intake is what a search for issues with a label has found.
type Intake struct {
	Ready   []int    // issues without a run, that may have one
	Open    int      // issues with an open run
	Refused []string // issues whose label does not count, and why
}

// issueRun is the name of a directory of the run of an issue.
var issueRun = regexp.MustCompile(`-issue-(\d+)$`)

// Intake finds the open issues with a label that have no run of a pipeline yet. The label counts if an account with write
// access has set it.
func (f *Forge) Intake(ctx context.Context, def Definition, settings config.Settings, label string) (in Intake, err error) {
	all, refused, err := f.ready(ctx, label)
	if err != nil {
		return in, err
	}
	in.Refused = refused
	started := map[int]bool{}
	dirs, err := filepath.Glob(filepath.Join(filepath.Dir(def.RunDir(ctx, settings.RunRoot, "x")), def.Plan.Pipeline+"-issue-*"))
	if err != nil {
		return in, err
	}
	for _, dir := range dirs {
		m := issueRun.FindStringSubmatch(dir)
		if m == nil {
			continue
		}
		number, err := strconv.Atoi(m[1])
		if err != nil {
			return in, err
		}
		d := rundir.At(dir)
		if _, err := d.Claim(); err != nil {
			continue
		}
		started[number] = true
		if now, err := d.Now(); err == nil && !now.State.Status.Closed() {
			in.Open++
		}
	}
	for _, i := range all {
		if !started[i.Number] {
			in.Ready = append(in.Ready, i.Number)
		}
	}
	return in, nil
}
