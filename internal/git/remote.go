package git

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// Remote is a repository that is reached over HTTPS. Git gets the token in its environment, for this address only: it
// is no argument, and no other host gets it.
type Remote struct {
	URL   string
	Token string
}

// MovedError means that a branch of a remote has commits that a push would lose.
type MovedError struct{ Branch, Message string }

func (e *MovedError) Error() string {
	return fmt.Sprintf("branch %s of the remote was moved meanwhile: %s", e.Branch, clip(e.Message, maxMessage))
}

// remote returns git for one remote. No program of a configuration runs, and no redirect is followed.
func (r *Repo) remote(at Remote) git {
	g := r.git.withEnv("GIT_ALLOW_PROTOCOL=http:https", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=http."+scope(at.URL)+".extraHeader",
		"GIT_CONFIG_VALUE_0=Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte("x-access-token:"+at.Token)))
	g.over = append(slices.Clip(g.over), "credential.helper=", "http.followRedirects=false", "http.cookieFile=",
		"push.followTags=false", "push.gpgSign=false", "push.recurseSubmodules=no", "fetch.recurseSubmodules=no")
	return g
}

// scope is the part of an address for which its host gets the token.
func scope(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Scheme + "://" + u.Host + "/"
}

// RemoteURL returns the address of the remote origin.
func (r *Repo) RemoteURL(ctx context.Context) (string, error) {
	address, err := r.git.line(ctx, "config", "--get", "remote.origin.url")
	if exitCode(err) == 1 {
		return "", fmt.Errorf("%s has no remote origin: add it with git remote add origin URL", r.root)
	}
	return address, err
}

// FetchTip copies the tip of a remote's branch with its history, and returns its commit; empty: there is no such branch.
// It writes only objects.
func (r *Repo) FetchTip(ctx context.Context, from Remote, branch string) (commit string, err error) {
	defer wrap(&err, "fetch branch %s of the remote of %s", branch, r.root)
	g := r.remote(from)
	out, err := g.line(ctx, "ls-remote", from.URL, "refs/heads/"+branch)
	if err != nil {
		return "", err
	}
	commit, _, _ = strings.Cut(out, "\t")
	if commit == "" {
		return "", nil
	}
	if _, err := r.commit(ctx, commit); err == nil {
		return commit, nil
	}
	_, err = g.output(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", from.URL, "refs/heads/"+branch)
	if err != nil {
		return "", err
	}
	return r.commit(ctx, commit)
}

// Push moves a branch of a remote forward to a commit, or creates it. It never forces: a branch with other commits is a
// [*MovedError].
func (r *Repo) Push(ctx context.Context, to Remote, branch, commit string) (err error) {
	defer wrap(&err, "push branch %s of %s", branch, r.root)
	out, err := r.remote(to).output(ctx, "push", "--porcelain", "--no-verify", to.URL, commit+":refs/heads/"+branch)
	for line := range strings.Lines(string(out)) {
		if rest, refused := strings.CutPrefix(line, "!\t"); refused && strings.Contains(rest, "[rejected]") {
			return &MovedError{Branch: branch, Message: strings.TrimSpace(rest)}
		}
	}
	return err
}

// Joined is the result of a merge of a commit into a run's branch. Files with conflicts have git's markers.
type Joined struct {
	Commit    string
	Conflicts []string
	Files     []File // that differ from the branch before, as a checkout has them; a missing one has no mode
}

// Join merges a commit into a run's branch, with or without conflicts. The result is a commit with both as parents.
// Attributes of commit start convert the files. Drop removes temporary files; the files are invalid then. A repetition
// returns the same. It needs git 2.38.
func (r *Repo) Join(ctx context.Context, c Commit, theirs string) (out Joined, drop func() error, err error) {
	defer wrap(&err, "merge commit %s into branch %s of %s", theirs, c.Branch, r.root)
	ours, at, err := r.target(ctx, c.Branch, c.Parent)
	if err != nil {
		return out, nil, err
	}
	if has, err := r.isAncestor(ctx, theirs, ours); err != nil || has {
		return Joined{Commit: ours}, func() error { return nil }, err
	}
	raw, err := r.git.output(ctx, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
	fields := splitNUL(raw)
	if err != nil && exitCode(err) != 1 || len(fields) == 0 {
		return out, nil, cmp.Or(err, errors.New("git printed no tree"))
	}
	tree := fields[0]
	out.Conflicts = slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(fields[1:]))),
		func(p string) bool { return p == "" })
	if out.Commit, err = r.joint(ctx, c, tree, ours, theirs, at); err != nil {
		return out, nil, err
	}
	paths, err := r.changed(ctx, ours, out.Commit)
	if err != nil {
		return out, nil, err
	}
	now, drop, err := r.versions(ctx, out.Commit, c.Start, paths)
	if err != nil {
		return out, nil, err
	}
	for _, p := range paths {
		f := now[p]
		f.Path = p
		out.Files = append(out.Files, f)
	}
	return out, drop, nil
}

// joint returns the commit with both parents, which a former call may have made.
func (r *Repo) joint(ctx context.Context, c Commit, tree, ours, theirs, at string) (string, error) {
	if at != "" && at != ours {
		has, err := r.git.line(ctx, "log", "-1", "--format=%T %P", at)
		if err == nil && has != tree+" "+ours+" "+theirs {
			err = &BranchError{Branch: c.Branch, At: at}
		}
		return at, err
	}
	if err := r.checkNotOut(ctx, c.Branch, at); err != nil {
		return "", err
	}
	text, err := r.committer(ctx).run(ctx, strings.NewReader(c.Message), "commit-tree", tree, "-p", ours, "-p", theirs,
		"-F", "-")
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(text))
	return id, r.moveRef(ctx, c.Branch, id, at)
}
