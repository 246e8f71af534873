package activities

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/forge"
	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Points of the work on a forge, each after what it names.
const (
	PointPushed   Point = "branch pushed"
	PointOpened   Point = "pull request opened"
	PointChecked  Point = "check seen"
	PointLogged   Point = "log fetched"
	PointRead     Point = "comment seen"
	PointAsked    Point = "question posted"
	PointAnswered Point = "answer taken" // its comment has the answer
	PointMerged   Point = "merge seen"
	PointDeleted  Point = "branch deleted"
)

// remote is the repository of a run on its forge.
type remote struct {
	*forge.Client
	ref   run.ForgeRef
	token string
}

// forgeOf returns the repository of a run on its forge, with the operator's token on this host. The settings of this host
// name the only forge that gets the token.
func (a *Activities) forgeOf(ctx context.Context, ref run.ForgeRef) (*remote, error) {
	if ref.URL != a.cfg.Forge {
		return nil, forgeRefuses(fmt.Errorf("the run is on the forge %s, and the setting forge.url of this host is %s", ref.URL,
			a.cfg.Forge))
	}
	owner, name, _ := strings.Cut(ref.Repo, "/")
	token, err := forge.Token(ctx, ref.URL, environ.Merge(ctx, os.Environ()))
	if err != nil {
		return nil, forgeRefuses(err)
	}
	a.cfg.LearnSecrets([]string{"GITHUB_TOKEN=" + token})
	client, err := forge.New(forge.Options{Forge: ref.URL, Token: token, Repo: forge.Repo{Owner: owner, Name: name},
		Cache: &a.answers})
	if err != nil {
		return nil, forgeRefuses(err)
	}
	return &remote{client, ref, token}, nil
}

func (r *remote) git() git.Remote {
	owner, name, _ := strings.Cut(r.ref.Repo, "/")
	return git.Remote{URL: forge.Remote(r.ref.URL, forge.Repo{Owner: owner, Name: name}), Token: r.token}
}

// forgeRefuses is the error of a forge that no repetition helps against.
func forgeRefuses(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrForge, err)
}

// limited returns when a forge takes requests again. Other errors are returned: those that a repetition does not help
// against as refused.
func limited(err error) (retryAt string, other error) {
	var limit *forge.LimitError
	switch {
	case errors.As(err, &limit):
		return run.Time(limit.Until.Add(time.Second)), nil
	case err != nil && forge.IsPermanent(err):
		return "", forgeRefuses(err)
	}
	return "", err
}

// toPull pushes the branch of the run and opens its pull request, or updates the open one.
func (a *Activities) toPull(ctx context.Context, d *delivery) error {
	if d.prepare || d.in.Forge == nil {
		if d.in.Forge == nil {
			d.decline("the run has no remote for a pull request: its source has no remote origin", nil)
		}
		return nil
	}
	r, err := a.forgeOf(ctx, *d.in.Forge)
	if err == nil {
		err = d.source.Push(ctx, r.git(), d.in.Workspace.Branch, d.commit)
	}
	var p forge.Pull
	if err == nil {
		a.cfg.OnPoint(PointPushed, d.commit)
		p, err = a.openPull(ctx, r, d)
	}
	if err == nil {
		a.cfg.OnPoint(PointOpened, p.URL)
		d.res.Delivered, d.res.To, d.res.Location, d.res.Commit = true, "pull_request", p.URL, d.commit
		d.res.Pull, d.res.Branch = p.Number, d.in.Workspace.Branch
		return nil
	}
	var moved *git.MovedError
	var app *temporal.ApplicationError
	if errors.As(err, &moved) {
		d.decline("the branch of the run was moved on the remote: "+moved.Error()+"; bring its commits there, or delete it there, "+
			"then retry", nil)
		return nil
	}
	if d.res.RetryAt, err = limited(err); errors.As(err, &app) && app.Type() == contract.ErrForge {
		d.decline("the forge refuses the pull request: "+app.Message(), nil)
		return nil
	}
	return err
}

func (a *Activities) openPull(ctx context.Context, r *remote, d *delivery) (forge.Pull, error) {
	body, err := a.pullBody(d)
	if err != nil {
		return forge.Pull{}, err
	}
	return r.OpenPull(ctx, forge.NewPull{Number: d.in.Pull, Branch: d.in.Workspace.Branch, Base: r.ref.Base, Title: a.pullTitle(d), Body: body,
		Draft: d.to.Draft, Reviewers: d.to.Reviewers})
}

func (a *Activities) pullTitle(d *delivery) string {
	const most = 120
	title, _, _ := strings.Cut(strings.TrimSpace(d.in.Message), "\n")
	if i := d.in.Forge.Issue; i != nil {
		title = i.Title
	}
	return run.Cut(run.OneLine(title), most)
}

// mentions are what a forge acts on in a text: accounts, and issues by number or address.
var mentions = regexp.MustCompile(`([@#]|(?i:GH-|/issues/|/pull/))(\w)`)

// unmentioned returns a text in which nothing mentions an account, and nothing closes an issue.
func unmentioned(text string) string { return mentions.ReplaceAllString(text, "$1\u200b$2") }

// pullBody is the evidence of the run. Nothing in it mentions an account or closes an issue.
func (a *Activities) pullBody(d *delivery) (string, error) {
	e, err := view.ReadRecord(a.open(d.in.Dir))
	if err != nil {
		return "", fmt.Errorf("read the evidence of the run: %w", err)
	}
	var text bytes.Buffer
	if err := report.Markdown(&text, e); err != nil {
		return "", err
	}
	const most = 50_000
	body := run.Cut(unmentioned(a.cfg.Redact(text.String())), most)
	if i := d.in.Forge.Issue; i != nil {
		body = fmt.Sprintf("Closes #%d.\n\n%s", i.Number, body)
	}
	return body, nil
}

// LookAtForge reads the issue and the pull request of a run, and writes there what follows from its state. Repeating it
// writes nothing twice.
func (a *Activities) LookAtForge(ctx context.Context, in contract.ForgeInput) (contract.ForgeResult, error) {
	r, err := a.forgeOf(ctx, in.Forge.Ref)
	if err != nil {
		return contract.ForgeResult{}, err
	}
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.ForgeResult{}, err
	}
	l := look{a: a, r: r, s: s, in: in}
	l.res.Read = in.Forge.Read
	l.since, err = time.Parse(run.TimeFormat, in.Forge.Since)
	if err != nil {
		return l.res, badInput("read the start of the run: %v", err)
	}
	at, err := limited(l.run(ctx))
	if err != nil {
		return contract.ForgeResult{}, err
	}
	if at != "" { // what was found is found again
		return contract.ForgeResult{Read: in.Forge.Read, RetryAt: at}, nil
	}
	return l.res, nil
}

// look reads a forge once, and writes there.
type look struct {
	a     *Activities
	r     *remote
	s     *store.Store
	in    contract.ForgeInput
	since time.Time
	res   contract.ForgeResult
}

func (l *look) run(ctx context.Context) error {
	for _, step := range []func(context.Context) error{l.pull, l.issue, l.comments, l.answered, l.refusals, l.ask} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (l *look) key(what string) string { return l.in.RunID + "/" + what }

// place is where questions are asked: the issue, or else the pull request; 0: nowhere yet.
func (l *look) place() int {
	switch f := l.in.Forge; {
	case f.Ref.Issue != nil:
		return f.Ref.Issue.Number
	case f.Pull != nil:
		return f.Pull.Number
	}
	return 0
}

// issue writes the place of the run, and finds out whether the issue is closed.
func (l *look) issue(ctx context.Context) error {
	of := l.in.Forge.Ref.Issue
	if of == nil {
		return nil
	}
	if !l.in.Forge.Told {
		_, err := l.r.Say(ctx, of.Number, l.key("run"), fmt.Sprintf("Run `%s` of pipeline `%s` works on this issue, on host `%s` "+
			"in `%s`. Comments by accounts with write access steer it; closing the issue cancels it.", l.in.RunID, l.in.Pipeline,
			l.in.Host, l.in.Dir), l.since)
		if err != nil {
			return err
		}
		l.res.Told = true
	}
	now, err := l.r.Issue(ctx, of.Number)
	if err != nil || now.Open || l.res.Seen != nil && l.res.Seen.Merged {
		return err
	}
	_, err = l.r.Say(ctx, of.Number, l.key("closed"), fmt.Sprintf("The issue was closed: run `%s` is cancelled.", l.in.RunID), l.since)
	l.res.Closed = err == nil
	return err
}

// maxLook is the maximum number of comments of one look. Later ones follow in the next look.
const maxLook = 10

// maxCommentText is the maximum size of a comment in bytes: it becomes part of the state.
const maxCommentText = 1500

// comments reads the comments that are new, of accounts with write access.
func (l *look) comments(ctx context.Context) error {
	var all []forge.Comment
	read := func(number int, where string, after int64, list func() ([]forge.Comment, error)) error {
		some, err := list()
		for _, c := range some {
			if c.Where == where && c.ID > after {
				all = append(all, c)
			}
		}
		return err
	}
	f := l.in.Forge
	if i := f.Ref.Issue; i != nil {
		if err := read(i.Number, forge.OnIssue, f.Read.Issue, func() ([]forge.Comment, error) {
			return l.r.Comments(ctx, i.Number, forge.OnIssue, l.since)
		}); err != nil {
			return err
		}
	}
	if p := f.Pull; p != nil {
		if err := read(p.Number, forge.OnPull, f.Read.Pull, func() ([]forge.Comment, error) {
			return l.r.Comments(ctx, p.Number, forge.OnPull, l.since)
		}); err != nil {
			return err
		}
		lines, err := l.r.ReviewComments(ctx, p.Number, l.since)
		if err != nil {
			return err
		}
		for where, after := range map[string]int64{forge.OnLine: f.Read.Line, forge.OnReview: f.Read.Review} {
			if err := read(p.Number, where, after, func() ([]forge.Comment, error) { return lines, nil }); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(all, func(a, b forge.Comment) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	for _, c := range all[:min(maxLook, len(all))] {
		if err := l.take(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// take notes a comment as read, and passes it on if its author may write.
func (l *look) take(ctx context.Context, c forge.Comment) error {
	self, err := l.r.Self(ctx)
	if err != nil {
		return err
	}
	on := l.in.Forge.Ref.Issue
	out := contract.ForgeComment{ID: c.ID, Where: c.Where, By: c.Author, Text: run.Cut(strings.TrimSpace(c.Body), maxCommentText)}
	read := &l.res.Read.Issue
	switch {
	case c.Where == forge.OnIssue && on != nil:
		out.On = on.Number
	case c.Where == forge.OnPull:
		read = &l.res.Read.Pull
	case c.Where == forge.OnLine:
		read = &l.res.Read.Line
		out.At = fmt.Sprintf("%s:%d", run.OneLine(c.Path), c.Line)
	default:
		read = &l.res.Read.Review
	}
	if out.On == 0 && l.in.Forge.Pull != nil {
		out.On = l.in.Forge.Pull.Number
	}
	if c.Author != self || !forge.IsOwn(c.Body) {
		level, may, err := l.r.MayWrite(ctx, c.Author)
		if err != nil {
			return err
		}
		if out.Level = level; may && out.Text != "" {
			l.a.cfg.OnPoint(PointRead, fmt.Sprint(c.ID))
			l.res.Comments = append(l.res.Comments, out)
		}
	}
	*read = max(*read, c.ID)
	return nil
}

// ask posts the open question, once.
func (l *look) ask(ctx context.Context) error {
	q, at := l.in.Question, l.place()
	if q == nil || at == 0 || l.in.Forge.Asked != nil && l.in.Forge.Asked.Question == q.ID {
		return nil
	}
	text, err := l.question(ctx, q)
	if err != nil {
		return err
	}
	id, err := l.r.Say(ctx, at, l.key(q.ID), text, l.since)
	if err != nil {
		return err
	}
	l.a.cfg.OnPoint(PointAsked, q.ID)
	l.res.Asked = &run.Posted{Question: q.ID, Comment: id, On: at}
	return nil
}

// question is the comment with a question: what it is about, findings, choices.
func (l *look) question(ctx context.Context, q *run.Question) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "**%s**\n", q.Words())
	if j := q.Judged; j != nil {
		fmt.Fprintf(&out, "\nVerdict of %s: %s\n", j.Role, j.Word)
	}
	for _, c := range q.Checks {
		fmt.Fprintf(&out, "- %s: %s\n", c.Name, c.Text)
	}
	if c := q.Change; c != nil && len(c.Files) > 0 {
		fmt.Fprintf(&out, "\nChanged: %s\n", strings.Join(c.Files, ", "))
	}
	const head = 3000
	for _, art := range q.Artifacts {
		raw, err := blobs.Get(ctx, l.s, art.Digest)
		if err != nil {
			return "", err
		}
		text := strings.ToValidUTF8(string(raw[:min(len(raw), head)]), "")
		fmt.Fprintf(&out, "\n<details><summary>%s</summary>\n\n%s\n\n</details>\n", art.Name, fenced(text))
	}
	out.WriteString("\nTo answer, comment with one of these:\n\n")
	for _, c := range q.Commands() {
		out.WriteString("- " + c + "\n")
	}
	return unmentioned(l.a.cfg.Redact(out.String())), nil
}

func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.ReplaceAll(strings.TrimSpace(text), "</details>", "") + "\n" + fence
}

// answered writes the answer into the comment of a question.
func (l *look) answered(ctx context.Context) error {
	asked := l.in.Forge.Asked
	if asked == nil || l.in.Answer == "" {
		return nil
	}
	if err := l.r.Edit(ctx, asked.Comment, l.key(asked.Question), fmt.Sprintf("**This question is %s.**", l.in.Answer)); err != nil {
		return err
	}
	l.a.cfg.OnPoint(PointAnswered, asked.Question)
	l.res.Answered = true
	return nil
}

// refusals answers commands that were not acted on.
func (l *look) refusals(ctx context.Context) error {
	for _, r := range l.in.Forge.Refused {
		_, err := l.r.Say(ctx, r.On, l.key(fmt.Sprintf("refused/%d", r.Comment)),
			fmt.Sprintf("The command of %s was not acted on: %s", r.By, unmentioned(r.Why)), l.since)
		if err != nil {
			return err
		}
		l.res.Replied = append(l.res.Replied, r.Comment)
	}
	return nil
}

// pull reads the state of the pull request.
func (l *look) pull(ctx context.Context) error {
	p := l.in.Forge.Pull
	if p == nil {
		return nil
	}
	now, err := l.r.Pull(ctx, p.Number)
	if err != nil {
		return err
	}
	seen := &run.PullSeen{Merged: now.Merged, Closed: !now.Open && !now.Merged, Conflict: now.Conflict && now.Head == p.Head}
	l.res.Seen = seen
	if now.Merged {
		l.a.cfg.OnPoint(PointMerged, now.URL)
	}
	if !now.Open {
		return nil
	}
	checks, err := l.r.Checks(ctx, p.Head)
	if err != nil || len(checks) == 0 {
		return err
	}
	l.a.cfg.OnPoint(PointChecked, p.Head)
	seen.Checks = run.ChecksPassed
	var failed []forge.Check
	for _, c := range checks {
		switch c.State {
		case forge.CheckPending:
			seen.Checks = run.ChecksPending
			return nil
		case forge.CheckFailed:
			failed = append(failed, c)
			seen.Failed = append(seen.Failed, run.Cut(run.OneLine(c.Name), 100))
		}
	}
	if len(failed) == 0 {
		return nil
	}
	const most = 10
	seen.Checks, seen.Failed = run.ChecksFailed, seen.Failed[:min(most, len(seen.Failed))]
	if p.Checks == run.ChecksFailed && slices.Equal(p.Failed, seen.Failed) {
		seen.Log, seen.Excerpt = p.Log, p.Excerpt
		return nil
	}
	return l.logs(ctx, failed[:min(most, len(failed))], seen)
}

// Bounds of the logs of failed checks.
const (
	maxLog     = 64 << 10 // of one check, in the store
	maxExcerpt = 4000     // of all of them, in the prompt
)

// logs stores the ends of the logs of failed checks, and an excerpt.
func (l *look) logs(ctx context.Context, failed []forge.Check, seen *run.PullSeen) error {
	var all strings.Builder
	for _, c := range failed {
		text, err := l.r.Log(ctx, c, maxLog)
		if err != nil {
			return err
		}
		text = l.a.cfg.Redact(text)
		fmt.Fprintf(&all, "== %s\n%s\n", c.Name, text)
		part := maxExcerpt / len(failed)
		seen.Excerpt += fmt.Sprintf("== %s\n%s\n", run.OneLine(c.Name), strings.ToValidUTF8(text[max(0, len(text)-part):], ""))
	}
	l.a.cfg.OnPoint(PointLogged, l.in.Forge.Pull.Head)
	b, err := l.a.storeText(ctx, l.s, all.String())
	seen.Log = &b
	return err
}

// MergeBase merges the tip of the base into the branch and the workspace of a run, with or without conflicts.
func (a *Activities) MergeBase(ctx context.Context, in contract.MergeBaseInput) (res contract.MergeBaseResult, err error) {
	defer a.keepAlive(ctx)()
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return res, err
	}
	r, err := a.forgeOf(ctx, in.Forge)
	if err != nil {
		return res, err
	}
	w := in.Tree.Workspace
	source, err := git.Open(ctx, w.Source)
	if err != nil {
		return res, explainMissingSource(ctx, w.Source, err)
	}
	tip, err := source.FetchTip(ctx, r.git(), in.Forge.Base)
	if err != nil {
		return res, err
	}
	if tip == "" {
		return res, badInput("merge branch %s of %s: it no longer exists", in.Forge.Base, in.Forge.Repo)
	}
	parent := in.Tree.Commit
	if parent == "" {
		parent = w.Base
	}
	joined, drop, err := source.Join(ctx, git.Commit{Branch: w.Branch, Parent: parent, Start: w.Base, Message: in.Message}, tip)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	if joined.Commit == parent {
		return res, nil
	}
	after, err := workspace.WithFiles(ctx, s, in.Tree.Tree, joined.Files)
	if err != nil {
		return res, err
	}
	if res.Changes, err = workspace.Compare(ctx, s, in.Tree.Tree, after); err != nil {
		return res, err
	}
	res.Changes.Cause, res.Changes.Commit, res.Changes.Base = run.CauseBase, joined.Commit, tip
	res.Conflicts = joined.Conflicts[:min(len(joined.Conflicts), workspace.MaxFiles)]
	in.Tree.Tree, in.Tree.Commit = after, joined.Commit
	res.Recovered, err = a.showJoined(ctx, s, in)
	return res, err
}

// showJoined makes the workspace hold the merged tree.
func (a *Activities) showJoined(ctx context.Context, s *store.Store, in contract.MergeBaseInput) (found []contract.RecoveredError,
	err error) {
	w, err := a.lockFolder(ctx, in.Target, in.Tree)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Unlock()) }()
	kept, err := a.restoreFolder(ctx, s, w, in.Tree, a.open(in.Dir))
	if len(kept) > 0 {
		found = []contract.RecoveredError{{Category: run.CategoryFileIO, Message: keptMessage(kept)}}
	}
	if err != nil {
		return found, err
	}
	return found, a.showCommit(ctx, w, in.Tree, in.Tree.Commit)
}

// LeaveForge deletes the branch of a run on the remote, if its pull request is merged or closed and no other account has pushed
// to it, and removes the workspace of the run.
func (a *Activities) LeaveForge(ctx context.Context, in contract.LeaveForgeInput) (res contract.LeaveForgeResult, err error) {
	if p := in.Forge.Pull; p != nil && (p.Merged || p.Closed) {
		r, err := a.forgeOf(ctx, in.Forge.Ref)
		if err != nil {
			return res, err
		}
		at, err := limited(r.DeleteBranch(ctx, p.Branch, p.Head))
		if err == nil && at != "" {
			err = errors.New("the forge takes no requests before " + at)
		}
		if err != nil {
			return res, fmt.Errorf("delete branch %s of the run on %s: %w", p.Branch, in.Forge.Ref.Repo, err)
		}
		a.cfg.OnPoint(PointDeleted, p.Branch)
		res.Deleted = true
	}
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return res, err
	}
	plan, err := a.plan(ctx, s, in.Plan)
	if err != nil || plan.Workspace == nil || plan.Workspace.Keep {
		return res, err
	}
	of := contract.DeliverInput{Target: in.Target, PlanUse: in.PlanUse, Workspace: in.Workspace, Commit: in.Commit, Tree: in.Tree}
	a.warn(ctx, "remove the workspace of a delivered run", a.folderOfRun(of), a.removeDelivered(ctx, s, of))
	return res, nil
}
