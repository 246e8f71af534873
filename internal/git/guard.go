package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// origin is the origin of the configuration of a repository.
type origin int

const (
	// own is a repository that the user of this process works with. Its filters run, because its files need them, such
	// as those of git-crypt; other commands of its configuration do not.
	own origin = iota
	// received is a repository that a received run directory names or contains: no command of its configuration runs.
	received
)

// commands are the settings that name a program, or lead to one, and what they are overridden with.
var commands = []struct {
	key    lazyregexp.Regexp
	value  string
	filter bool
}{
	{lazyregexp.New(`^filter\..*\.(clean|smudge|process)$`), "", true},
	{lazyregexp.New(`^filter\..*\.required$`), "false", true},
	{lazyregexp.New(`^diff\..*\.(textconv|command)$`), "", false},
	{lazyregexp.New(`^diff\.external$`), "", false},
	{lazyregexp.New(`^merge\..*\.driver$`), "false", false},
	{lazyregexp.New(`^core\.(sshcommand|gitproxy|askpass|editor|alternaterefscommand)$`), "", false},
	{lazyregexp.New(`^(sequence\.editor|interactive\.difffilter|gpg\.program|gpg\..*\.program)$`), "false", false},
	{lazyregexp.New(`^credential\.(.*\.)?helper$`), "", false},
	{lazyregexp.New(`^trailer\..*\.(cmd|command)$`), "", false},
	{lazyregexp.New(`^remote\..*\.(uploadpack|receivepack|vcs)$`), "false", false},
	{lazyregexp.New(`^protocol\.(.*\.)?allow$`), "never", false},
}

// readConfig is the time to read a configuration. It can include a FIFO.
const readConfig = 15 * time.Second

// reading returns a context for commands that read a configuration first.
func (g git) reading(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, cmp.Or(g.timeout, readConfig), errSlowConfig)
}

var errSlowConfig = errors.New("reading the configuration of the repository takes too long")

// guarded returns git for the same folder with overridden commands of the repository's own configuration. Those of the
// user's and the system's configuration stay. A worktree's own configuration can be written by an agent, so none of
// its commands run.
func (g git) guarded(ctx context.Context, from origin) (git, error) {
	reading, cancel := g.reading(ctx)
	defer cancel()
	out, err := g.output(reading, "config", "--list", "-z", "--show-scope")
	if err != nil {
		return g, fmt.Errorf("read the configuration of %s: %w", g.dir, err)
	}
	fields := splitNUL(out)
	for i := 0; i+1 < len(fields); i += 2 {
		scope := fields[i]
		key, _, _ := strings.Cut(fields[i+1], "\n")
		if scope != "local" && scope != "worktree" {
			continue
		}
		value, isCommand := overridden(key, from == received || scope == "worktree")
		switch {
		case !isCommand:
		case strings.Contains(key, "="):
			return g, fmt.Errorf("the configuration of %s has the setting %q, which cannot be overridden; remove it with: "+
				"git config --unset-all", g.dir, key)
		default:
			g.over = append(g.over, key+"="+value)
		}
	}
	if from == received {
		g = g.withEnv("GIT_ALLOW_PROTOCOL=none") // no fetch of missing objects
	}
	return g, nil
}

func overridden(key string, filters bool) (value string, isCommand bool) {
	for _, c := range commands {
		if c.key.MatchString(key) && (filters || !c.filter) {
			return c.value, true
		}
	}
	return "", false
}
