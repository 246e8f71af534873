package forge

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v93/github"
)

// Pull is a pull request.
type Pull struct {
	Number       int
	URL          string
	Open, Merged bool
	Conflict     bool   // with its base; false as long as the forge has not found out
	Branch, Head string // the branch with the changes, and its commit
	Base         string
	Body         string
}

// NewPull is a pull request to open.
type NewPull struct {
	Number       int // of the pull request that the run has; 0: none
	Branch, Base string
	Title, Body  string
	Draft        bool
	Reviewers    []string
}

// DefaultBranch returns the default branch of the repository.
func (c *Client) DefaultBranch(ctx context.Context) (string, error) {
	r, _, err := c.api.Repositories.Get(ctx, c.repo.Owner, c.repo.Name)
	if err != nil {
		return "", c.failed("read the default branch", err)
	}
	return r.GetDefaultBranch(), nil
}

// OpenPull opens a pull request of a branch, or updates the open one of that branch.
func (c *Client) OpenPull(ctx context.Context, in NewPull) (Pull, error) {
	p, err := c.openPull(ctx, in)
	if err != nil || len(in.Reviewers) == 0 || !p.Open {
		return p, err
	}
	_, _, err = c.api.PullRequests.RequestReviewers(ctx, c.repo.Owner, c.repo.Name, p.Number,
		github.ReviewersRequest{Reviewers: in.Reviewers})
	return p, c.failed(fmt.Sprintf("ask for the review of #%d", p.Number), err)
}

func (c *Client) openPull(ctx context.Context, in NewPull) (Pull, error) {
	found, _, err := c.api.PullRequests.List(ctx, c.repo.Owner, c.repo.Name, &github.PullRequestListOptions{
		State: "open", Head: c.repo.Owner + ":" + in.Branch, Base: in.Base,
	})
	if err != nil {
		return Pull{}, c.failed("find the pull request of "+in.Branch, err)
	}
	if i := slices.IndexFunc(found, func(p *github.PullRequest) bool {
		return p.GetHead().GetRef() == in.Branch && p.GetHead().GetRepo().GetFullName() == c.repo.String()
	}); i >= 0 {
		if found[i].GetBody() == in.Body {
			return pullOf(found[i]), nil
		}
		p, _, err := c.api.PullRequests.Edit(ctx, c.repo.Owner, c.repo.Name, found[i].GetNumber(),
			&github.PullRequest{Body: &in.Body})
		if err != nil {
			return Pull{}, c.failed(fmt.Sprintf("update pull request #%d", found[i].GetNumber()), err)
		}
		return pullOf(p), nil
	}
	if in.Number > 0 { // it was merged or closed meanwhile
		return c.Pull(ctx, in.Number)
	}
	p, _, err := c.api.PullRequests.Create(ctx, c.repo.Owner, c.repo.Name, github.CreatePullRequest{
		Title: &in.Title, Head: in.Branch, Base: in.Base, Body: &in.Body, Draft: &in.Draft,
	})
	if err != nil {
		return Pull{}, c.failed("open a pull request of "+in.Branch, err)
	}
	return pullOf(p), nil
}

// Pull reads a pull request.
func (c *Client) Pull(ctx context.Context, number int) (Pull, error) {
	p, _, err := c.api.PullRequests.Get(ctx, c.repo.Owner, c.repo.Name, number)
	if err != nil {
		return Pull{}, c.failed(fmt.Sprintf("read pull request #%d", number), err)
	}
	return pullOf(p), nil
}

func pullOf(p *github.PullRequest) Pull {
	return Pull{Number: p.GetNumber(), URL: p.GetHTMLURL(), Open: p.GetState() == "open",
		Merged: p.GetMerged() || !p.GetMergedAt().IsZero(), Conflict: p.Mergeable != nil && !*p.Mergeable,
		Branch: p.GetHead().GetRef(), Head: p.GetHead().GetSHA(), Base: p.GetBase().GetRef(), Body: p.GetBody()}
}

// ReviewComments lists the comments on lines of a pull request since a time, and the texts of its reviews.
func (c *Client) ReviewComments(ctx context.Context, number int, since time.Time) (all []Comment, err error) {
	lines, err := pages(c, fmt.Sprintf("list the review comments of #%d", number),
		func(page github.ListOptions) ([]*github.PullRequestComment, *github.Response, error) {
			return c.api.PullRequests.ListComments(ctx, c.repo.Owner, c.repo.Name, number,
				&github.PullRequestListCommentsOptions{Since: since, ListOptions: page})
		})
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		all = append(all, Comment{ID: l.GetID(), Where: OnLine, Author: l.GetUser().GetLogin(), Body: l.GetBody(),
			URL: l.GetHTMLURL(), At: l.GetCreatedAt().Time, Path: l.GetPath(), Line: l.GetLine()})
	}
	reviews, err := pages(c, fmt.Sprintf("list the reviews of #%d", number),
		func(page github.ListOptions) ([]*github.PullRequestReview, *github.Response, error) {
			return c.api.PullRequests.ListReviews(ctx, c.repo.Owner, c.repo.Name, number, &page)
		})
	for _, r := range reviews {
		if r.GetState() != "PENDING" && strings.TrimSpace(r.GetBody()) != "" {
			all = append(all, Comment{ID: r.GetID(), Where: OnReview, Author: r.GetUser().GetLogin(), Body: r.GetBody(),
				URL: r.GetHTMLURL(), At: r.GetSubmittedAt().Time})
		}
	}
	return all, err
}

// States of a check.
const (
	CheckPending = "pending"
	CheckPassed  = "passed"
	CheckFailed  = "failed"
)

// Check is a check of a commit.
type Check struct {
	Name  string
	State string
	Text  string // what it reports about itself
	Job   int64  // of GitHub's own runners, which have its log; 0: none
}

// Checks lists the newest check of each name of a commit: check runs and statuses.
func (c *Client) Checks(ctx context.Context, commit string) (all []Check, err error) {
	runs, err := pages(c, "list the checks of "+commit,
		func(page github.ListOptions) ([]*github.CheckRun, *github.Response, error) {
			latest := "latest"
			found, res, err := c.api.Checks.ListCheckRunsForRef(ctx, c.repo.Owner, c.repo.Name, commit,
				&github.ListCheckRunsOptions{Filter: &latest, ListOptions: page})
			if err != nil {
				return nil, res, err
			}
			return found.CheckRuns, res, nil
		})
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		check := Check{Name: r.GetName(), State: stateOf(r.GetStatus(), r.GetConclusion()),
			Text: strings.TrimSpace(r.GetOutput().GetTitle() + "\n" + r.GetOutput().GetSummary() + "\n" + r.GetOutput().GetText())}
		if r.GetApp().GetSlug() == "github-actions" {
			check.Job = r.GetID()
		}
		all = append(all, check)
	}
	status, _, err := c.api.Repositories.GetCombinedStatus(ctx, c.repo.Owner, c.repo.Name, commit,
		&github.ListOptions{PerPage: 100})
	if err != nil {
		return nil, c.failed("list the statuses of "+commit, err)
	}
	for _, s := range status.Statuses {
		check := Check{Name: s.GetContext(), State: CheckPending, Text: s.GetDescription()}
		switch s.GetState() {
		case "success":
			check.State = CheckPassed
		case "failure", "error":
			check.State = CheckFailed
		}
		all = append(all, check)
	}
	return all, nil
}

// stateOf is the state of a check run. One that waits for an operator is pending.
func stateOf(status, conclusion string) string {
	switch {
	case status != "completed" || conclusion == "action_required":
		return CheckPending
	case conclusion == "success" || conclusion == "neutral" || conclusion == "skipped":
		return CheckPassed
	}
	return CheckFailed
}

// Log returns the end of the log of a check, or what the check reports about itself.
func (c *Client) Log(ctx context.Context, check Check, most int) (string, error) {
	if check.Job == 0 {
		return tail(check.Text, most), nil
	}
	at, _, err := c.api.Actions.GetWorkflowJobLogs(ctx, c.repo.Owner, c.repo.Name, check.Job, 1)
	if IsMissing(err) { // too old
		return tail(check.Text, most), nil
	}
	if err != nil {
		return "", c.failed("read the log of check "+check.Name, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return "", fmt.Errorf("read the log of check %s: its address is not valid", check.Name)
	}
	res, err := c.plain.Do(req) // the address has a separate key
	if err != nil {
		return "", fmt.Errorf("read the log of check %s: the connection failed", check.Name)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("read the log of check %s: %s", check.Name, res.Status)
	}
	const limit = 64 << 20
	text, err := lastBytes(io.LimitReader(res.Body, limit), most)
	if err != nil {
		return "", fmt.Errorf("read the log of check %s: %w", check.Name, err)
	}
	return text, nil
}

// lastBytes reads to the end and keeps the last bytes.
func lastBytes(r io.Reader, most int) (string, error) {
	var kept []byte
	chunk := make([]byte, 64<<10)
	for {
		n, err := r.Read(chunk)
		if kept = append(kept, chunk[:n]...); len(kept) > most {
			kept = slices.Clone(kept[len(kept)-most:])
		}
		if err == io.EOF {
			return tail(string(kept), most), nil
		}
		if err != nil {
			return "", err
		}
	}
}

func tail(text string, most int) string {
	return strings.ToValidUTF8(text[max(0, len(text)-most):], "�")
}

// BranchAt returns the commit of a branch; empty: there is no such branch.
func (c *Client) BranchAt(ctx context.Context, branch string) (string, error) {
	ref, _, err := c.api.Git.GetRef(ctx, c.repo.Owner, c.repo.Name, "heads/"+branch)
	if IsMissing(err) {
		return "", nil
	}
	return ref.GetObject().GetSHA(), c.failed("read branch "+branch, err)
}

// DeleteBranch deletes a branch that is at a commit. One that was moved stays.
func (c *Client) DeleteBranch(ctx context.Context, branch, at string) error {
	now, err := c.BranchAt(ctx, branch)
	if err != nil || now != at {
		return err
	}
	_, err = c.api.Git.DeleteRef(ctx, c.repo.Owner, c.repo.Name, "heads/"+branch)
	if IsMissing(err) || hasStatus(err, http.StatusUnprocessableEntity) {
		return nil
	}
	return c.failed("delete branch "+branch, err)
}
