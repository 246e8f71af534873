package forge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v93/github"
)

// Issue is an issue.
type Issue struct {
	Number      int
	Title, Body string
	URL, Author string
	Open        bool
}

// Where a comment is.
const (
	OnIssue  = "issue"  // on the issue
	OnPull   = "pull"   // on the pull request
	OnLine   = "line"   // on a line of the pull request
	OnReview = "review" // the text of a review of the pull request
)

// Comment is a comment on an issue or a pull request.
type Comment struct {
	ID     int64
	Where  string
	Author string
	Body   string
	URL    string
	At     time.Time // when it was written
	Path   string    // of the file, on a line
	Line   int
}

// Self is the login of the account of the token.
func (c *Client) Self(ctx context.Context) (string, error) {
	if c.account != "" {
		return c.account, nil
	}
	u, _, err := c.api.Users.Get(ctx, "")
	if err != nil {
		return "", c.failed("read the account of the token", err)
	}
	c.account = u.GetLogin()
	return c.account, nil
}

// MayWrite returns the permission of an account, and whether it may write to the repository.
func (c *Client) MayWrite(ctx context.Context, login string) (level string, may bool, err error) {
	level, known := c.levels[login]
	if !known {
		l, _, err := c.api.Repositories.GetPermissionLevel(ctx, c.repo.Owner, c.repo.Name, login)
		switch {
		case IsMissing(err): // no such account
			level = "none"
		case err != nil:
			return "", false, c.failed("read the permission of "+login, err)
		default:
			level = l.GetPermission()
		}
		c.levels[login] = level
	}
	return level, slices.Contains([]string{"admin", "maintain", "write"}, level), nil
}

// Issue reads an issue.
func (c *Client) Issue(ctx context.Context, number int) (Issue, error) {
	i, _, err := c.api.Issues.Get(ctx, c.repo.Owner, c.repo.Name, number)
	if err != nil {
		return Issue{}, c.failed(fmt.Sprintf("read issue #%d", number), err)
	}
	return issueOf(i), nil
}

func issueOf(i *github.Issue) Issue {
	return Issue{Number: i.GetNumber(), Title: i.GetTitle(), Body: i.GetBody(), URL: i.GetHTMLURL(),
		Author: i.GetUser().GetLogin(), Open: i.GetState() == "open"}
}

// Labelled lists the open issues with a label, the oldest first.
func (c *Client) Labelled(ctx context.Context, label string) ([]Issue, error) {
	found, err := pages(c, "list the issues with label "+label,
		func(page github.ListOptions) ([]*github.Issue, *github.Response, error) {
			return c.api.Issues.ListByRepo(ctx, c.repo.Owner, c.repo.Name, &github.IssueListByRepoOptions{
				State: "open", Labels: []string{label}, Sort: "created", Direction: "asc", ListOptions: page,
			})
		})
	var all []Issue
	for _, i := range found {
		if !i.IsPullRequest() {
			all = append(all, issueOf(i))
		}
	}
	return all, err
}

// LabelledBy returns who set a label of an issue last; empty: the issue does not have it.
func (c *Client) LabelledBy(ctx context.Context, number int, label string) (string, error) {
	events, err := pages(c, fmt.Sprintf("read the labels of issue #%d", number),
		func(page github.ListOptions) ([]*github.IssueEvent, *github.Response, error) {
			return c.api.Issues.ListIssueEvents(ctx, c.repo.Owner, c.repo.Name, number, &page)
		})
	by := ""
	for _, e := range events {
		switch {
		case !strings.EqualFold(e.GetLabel().GetName(), label):
		case e.GetEvent() == "labeled":
			by = e.GetActor().GetLogin()
		case e.GetEvent() == "unlabeled":
			by = ""
		}
	}
	return by, err
}

// Comments lists the comments on an issue or a pull request that were written or edited since a time.
func (c *Client) Comments(ctx context.Context, number int, where string, since time.Time) ([]Comment, error) {
	opts := github.IssueListCommentsOptions{}
	if !since.IsZero() {
		opts.Since = &since
	}
	found, err := pages(c, fmt.Sprintf("list the comments on #%d", number),
		func(page github.ListOptions) ([]*github.IssueComment, *github.Response, error) {
			opts.ListOptions = page
			return c.api.Issues.ListComments(ctx, c.repo.Owner, c.repo.Name, number, &opts)
		})
	var all []Comment
	for _, f := range found {
		all = append(all, Comment{ID: f.GetID(), Where: where, Author: f.GetUser().GetLogin(), Body: f.GetBody(),
			URL: f.GetHTMLURL(), At: f.GetCreatedAt().Time})
	}
	return all, err
}

// marker begins a comment of Passbook, and is hidden where it is shown. Only comments of the token's own account count.
func marker(key string) string { return "<!-- passbook:" + key + " -->" }

// IsOwn reports whether a comment of this account was written by Passbook, and not by an operator with the same account.
func IsOwn(body string) bool { return strings.HasPrefix(strings.TrimSpace(body), "<!-- passbook:") }

// Say writes a comment, unless one with the same key is there; edit writes it anew if its text is another one.
func (c *Client) Say(ctx context.Context, number int, key, text string, since time.Time) (int64, error) {
	body := marker(key) + "\n" + text
	id, was, err := c.said(ctx, number, key, since)
	switch {
	case err != nil:
		return 0, err
	case id != 0 && was == body:
		return id, nil
	case id != 0:
		return id, c.edit(ctx, id, body)
	}
	made, _, err := c.api.Issues.CreateComment(ctx, c.repo.Owner, c.repo.Name, number,
		github.IssueCommentRequest{Body: body})
	if err != nil {
		return 0, c.failed(fmt.Sprintf("comment on #%d", number), err)
	}
	return made.GetID(), nil
}

// said finds the comment with a key.
func (c *Client) said(ctx context.Context, number int, key string, since time.Time) (int64, string, error) {
	self, err := c.Self(ctx)
	if err != nil {
		return 0, "", err
	}
	all, err := c.Comments(ctx, number, OnIssue, since)
	for _, comment := range all {
		if comment.Author == self && strings.HasPrefix(comment.Body, marker(key)) {
			return comment.ID, comment.Body, nil
		}
	}
	return 0, "", err
}

// Edit replaces the text of the comment with a key. A comment that was deleted is left out.
func (c *Client) Edit(ctx context.Context, id int64, key, text string) error {
	return c.edit(ctx, id, marker(key)+"\n"+text)
}

func (c *Client) edit(ctx context.Context, id int64, body string) error {
	_, _, err := c.api.Issues.UpdateComment(ctx, c.repo.Owner, c.repo.Name, id, github.IssueCommentRequest{Body: body})
	if IsMissing(err) {
		return nil
	}
	return c.failed("edit a comment", err)
}
