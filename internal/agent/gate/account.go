package gate

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/pipeline"
)

// Account is who pays for the calls of an agent.
type Account struct {
	ID string `json:"account,omitempty"` // a keyed digest of what identifies it
	// of the definition, or the program with the begin of the id: claude (3f2a91bc)
	Name string `json:"account_name,omitempty"`
}

// AccountOf returns the account that the calls of an agent use: that of its definition, or else that of its program with its
// credentials in an environment. If the program is an interpreter or a launcher, the whole command counts. The id is a
// digest under a key, which is that of the store: it shows no credential, and without the key none can be tried against
// it.
func AccountOf(key []byte, ag pipeline.Agent, environ []string) Account {
	kind, _ := adapter.Find(ag.Reply)
	program := kind.Program
	if program == "" && len(ag.Run) > 0 {
		program = filepath.Base(ag.Run[0])
	}
	identity, shownName := []string{"account", ag.Account}, program
	if ag.Account == "" {
		identity = append([]string{"program", program}, credentials(program, environ)...)
		if kind.Program == "" && launcher.MatchString(program) {
			identity = append(append(identity, "command"), ag.Run[1:]...)
			shownName = scriptName(program, ag.Run[1:])
		}
	}
	mac := hmac.New(sha256.New, key)
	for _, part := range identity {
		mac.Write([]byte(part))
		mac.Write([]byte{0})
	}
	const size, shown = 16, 8
	id := hex.EncodeToString(mac.Sum(nil))[:size]
	return Account{ID: id, Name: cmp.Or(ag.Account, fmt.Sprintf("%s (%s)", shownName, id[:shown]))}
}

// launcher are programs that execute what their arguments name. Two commands of one of them have nothing in common.
var launcher = lazyregexp.New(`^((ba|da|z|fi|k)?sh|python[0-9.]*|node|deno|bunx?|ruby|perl|php|java|tsx|ts-node|` +
	`npx|p?npm|pnpx|yarn|uvx?|pipx|nix|make|go|docker|podman|kubectl|ssh|sudo|doas|bwrap|firejail|unshare|systemd-run|` +
	`env|nohup|setsid|nice|ionice|chrt|taskset|timeout|time|stdbuf|script|flock|caffeinate|xargs|parallel)$`)

// scriptName is how an account of a command is shown: sh agent.sh, sh -c sed. It shows no value of a variable.
func scriptName(program string, args []string) string {
	for i, arg := range args {
		switch {
		case script.MatchString(arg) && i+1 < len(args):
			if first := strings.Fields(args[i+1]); len(first) > 0 && plainWord.MatchString(first[0]) {
				return program + " -c " + first[0]
			}
			return program
		case strings.HasPrefix(arg, "-"), assignment.MatchString(arg), number.MatchString(arg):
		default:
			return program + " " + filepath.Base(arg)
		}
	}
	return program
}

var (
	script     = lazyregexp.New(`^-[a-z]*c$`) // the next argument is the text of a script
	assignment = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*=`)
	number     = lazyregexp.New(`^[0-9.]+[smhd]?$`) // of nice and timeout
	plainWord  = lazyregexp.New(`^[A-Za-z0-9_./+-]{1,40}$`)
)

// prefixes of the variables with which the programs of providers find their account. All other programs use any
// variable that looks like a credential.
var prefixes = map[string][]string{
	"claude": {"ANTHROPIC_", "CLAUDE_"}, "codex": {"OPENAI_", "CODEX_"}, "gemini": {"GEMINI_", "GOOGLE_"},
}

// suffixes of variables that identify an account.
var suffixes = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS", "_BASE_URL", "_CONFIG_DIR", "_HOME",
	"_PROJECT"}

// credentials returns the variables that identify the account of a program, sorted.
func credentials(program string, environ []string) []string {
	var out []string
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		has := func(suffix string) bool { return strings.HasSuffix(name, suffix) }
		begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		of, known := prefixes[program]
		if value != "" && slices.ContainsFunc(suffixes, has) && (!known || slices.ContainsFunc(of, begins)) {
			out = append(out, pair)
		}
	}
	slices.Sort(out)
	return out
}
