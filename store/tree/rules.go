package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Rules say what does not belong to a tree, besides .git, which never does. The
// zero value leaves out what looks like a secret, and refuses symlinks that
// point outside.
type Rules struct {
	Ignore         []string // in the syntax of .gitignore, from the tree's root; the last one that fits counts
	Paths          []string // left out too, unless Ignore takes them in again; a folder ends with a slash and is left out whole
	Tracked        []string // files that are no secrets, whatever their names look like
	IncludeSecrets bool     // take what looks like a secret too
	SkipOutside    bool     // leave out symlinks that point outside, and name them, instead of refusing
}

// Check says whether the patterns can be read.
func (r Rules) Check() error {
	_, err := r.compile()
	return err
}

// Reason is why something was left out.
type Reason string

// The reasons.
const (
	ReasonGit     Reason = "git"     // git's own
	ReasonIgnored Reason = "ignored" // by a pattern or a path
	ReasonSecret  Reason = "secret"  // its name looks like that of a secret
	ReasonOutside Reason = "outside" // a symlink that points out of the tree
	ReasonSpecial Reason = "special" // a socket, device or pipe
)

// secrets are names under which programs keep what nobody else may see, as
// ignore patterns.
var secrets = []string{
	".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template", "!.env.dist", ".envrc",
	"*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", ".ssh/",
	"credentials", "credentials.json", "credentials.yml", "credentials.yaml", "credentials.toml", "credentials.ini", "credentials.csv", "credentials.xml", "credentials.db",
	"*.credentials", ".credentials*", "client_secret*.json", "service-account*.json", "service_account*.json",
	".npmrc", ".pypirc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials", ".dockercfg", ".docker/config.json",
	".aws/", ".azure/", ".gnupg/", ".kube/config", "*.tfstate", "*.tfstate.backup", ".vault-token",
}

// sieve is rules made ready. A folder that it leaves out is not looked into.
type sieve struct {
	rules           Rules
	ignore, secrets []pattern
	paths           map[string]bool
	tracked         map[string]bool
	folders         map[string]bool // with tracked files below them: true if they look like secrets
	opened          bool            // one of them does
}

func (r Rules) compile() (sieve, error) {
	ignore, err := parsePatterns(r.Ignore)
	if err != nil {
		return sieve{}, err
	}
	s := sieve{rules: r, ignore: ignore, paths: setOf(r.Paths)}
	if r.IncludeSecrets {
		return s, nil
	}
	s.secrets, err = parsePatterns(secrets)
	s.track(r.Tracked)
	return s, err
}

func setOf(paths []string) map[string]bool {
	set := make(map[string]bool, len(paths))
	for _, p := range paths {
		set[p] = true
	}
	return set
}

// track takes note of the tracked files, and of the folders that have to be
// looked into for their sake.
func (s *sieve) track(files []string) {
	s.tracked, s.folders = setOf(files), map[string]bool{}
	for _, file := range files {
		for dir := parent(file); dir != "."; dir = parent(dir) {
			if _, seen := s.folders[dir]; seen {
				break
			}
			s.folders[dir] = matches(s.secrets, dir, true)
			s.opened = s.opened || s.folders[dir]
		}
	}
}

// ignored says whether a pattern or one of the paths leaves out what is at a path.
func (s sieve) ignored(path string, folder bool) bool {
	if last, ok := lastFit(s.ignore, path, folder); ok {
		return !last.include
	}
	return s.listed(path, folder) || below(path, s.listedFolder)
}

func (s sieve) listed(path string, folder bool) bool {
	if folder {
		path += "/"
	}
	return s.paths[path]
}

// listedFolder says whether a folder is one of the paths, and no pattern takes it in again.
func (s sieve) listedFolder(dir string) bool {
	if !s.listed(dir, true) {
		return false
	}
	last, ok := lastFit(s.ignore, dir, true)
	return !ok || !last.include
}

// secret says whether what is at a path looks like one: by its own name, or by
// that of a folder that is looked into only for its tracked files.
func (s sieve) secret(path string, folder bool) bool {
	if _, leads := s.folders[path]; s.tracked[path] || folder && leads {
		return false
	}
	return matches(s.secrets, path, folder) || s.opened && below(path, func(dir string) bool { return s.folders[dir] })
}

// below says whether one of the folders above a path is so.
func below(path string, is func(dir string) bool) bool {
	for dir := parent(path); dir != "."; dir = parent(dir) {
		if is(dir) {
			return true
		}
	}
	return false
}

// out says why what is at a path below root is left out, and "" if it is not.
// The folders above it are not asked.
func (s sieve) out(root *os.Root, path string, info fs.FileInfo) (Reason, error) {
	kind := info.Mode().Type()
	switch {
	case isGit(base(path)):
		return ReasonGit, nil
	case s.ignored(path, info.IsDir()):
		return ReasonIgnored, nil
	case s.secret(path, info.IsDir()):
		return ReasonSecret, nil
	case kind&^(fs.ModeDir|fs.ModeSymlink) != 0:
		return ReasonSpecial, nil
	case kind != fs.ModeSymlink || !s.rules.SkipOutside:
		return "", nil
	}
	target, err := root.Readlink(path)
	if outside := (*OutsideError)(nil); errors.As(checkLink(path, target), &outside) && err == nil {
		return ReasonOutside, nil
	}
	return "", err
}

// pattern is one line of a .gitignore.
type pattern struct {
	glob     string
	include  bool // it began with !
	folders  bool // it ended with /
	anchored bool // it held another /
}

// parsePatterns reads lines as git does; blank ones and comments count for nothing.
func parsePatterns(lines []string) ([]pattern, error) {
	var all []pattern
	for _, text := range lines {
		p, err := parsePattern(text)
		if err != nil {
			return nil, err
		}
		if p.glob != "" {
			all = append(all, p)
		}
	}
	return all, nil
}

func parsePattern(text string) (pattern, error) {
	glob := trimSpaces(text)
	if strings.HasPrefix(glob, "#") {
		return pattern{}, nil
	}
	p := pattern{}
	glob, p.include = strings.CutPrefix(glob, "!")
	glob, p.folders = strings.CutSuffix(glob, "/")
	p.anchored = strings.Contains(glob, "/")
	glob = strings.TrimPrefix(glob, "/")
	if inside, ok := strings.CutSuffix(glob, "/**"); ok {
		glob = inside + "/**/*" // what is in the folder, not the folder
	}
	p.glob = classes.Replace(braces.Replace(glob))
	if !doublestar.ValidatePattern(p.glob) || strings.Contains(p.glob, ":]") {
		return pattern{}, fmt.Errorf("ignore pattern %q cannot be read: it is in the syntax of .gitignore", text)
	}
	return p, nil
}

// doublestar knows {a,b}, which git does not, and no [[:alpha:]], which git does.
var (
	braces  = strings.NewReplacer("{", `\{`, "}", `\}`, `\{`, `\{`, `\}`, `\}`, `\\`, `\\`)
	classes = strings.NewReplacer("[:alnum:]", "0-9A-Za-z", "[:alpha:]", "A-Za-z", "[:blank:]", " \t", "[:digit:]", "0-9", "[:lower:]", "a-z",
		"[:space:]", "\t-\r ", "[:upper:]", "A-Z", "[:xdigit:]", "0-9A-Fa-f")
)

// trimSpaces removes spaces from the end, but not one behind a backslash.
func trimSpaces(s string) string {
	for strings.HasSuffix(s, " ") && !strings.HasSuffix(s, `\ `) {
		s = s[:len(s)-1]
	}
	return s
}

// matches says whether the last pattern that fits leaves the path out.
func matches(patterns []pattern, path string, folder bool) bool {
	last, ok := lastFit(patterns, path, folder)
	return ok && !last.include
}

func lastFit(patterns []pattern, path string, folder bool) (pattern, bool) {
	for i := len(patterns) - 1; i >= 0; i-- {
		if patterns[i].fits(path, folder) {
			return patterns[i], true
		}
	}
	return pattern{}, false
}

func (p pattern) fits(path string, folder bool) bool {
	if p.folders && !folder {
		return false
	}
	if !p.anchored {
		path = base(path)
	}
	return doublestar.MatchUnvalidated(p.glob, path)
}

// base is the last name of a path.
func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
