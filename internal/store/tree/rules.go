package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Rules define what does not belong to a tree, in addition to .git. The zero value excludes what looks like a
// secret, and rejects symlinks that point outside.
type Rules struct {
	Ignore []string // .gitignore patterns relative to the root; the last match counts
	// also excluded, unless Ignore includes them; folders end with a slash
	Paths          []string
	Tracked        []string // files that are not secrets despite their names
	IncludeSecrets bool     // include what looks like a secret
	SkipOutside    bool     // skip and report symlinks that point outside instead of failing
	Limits         Limits   // of what is saved
}

// Reason is why something was left out.
type Reason string

const (
	ReasonGit     Reason = "git"     // git's own
	ReasonIgnored Reason = "ignored" // by a pattern or a path
	ReasonSecret  Reason = "secret"  // its name looks like that of a secret
	ReasonOutside Reason = "outside" // a symlink that points out of the tree
	ReasonSpecial Reason = "special" // a socket, device or pipe
	ReasonName    Reason = "name"    // git adds no file of its name
)

// secrets are ignore patterns for files in which programs store secrets.
var secrets = []string{
	".env", ".env.*", "!.env.example", "!.env.sample", "!.env.template", "!.env.dist", ".envrc",
	"*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", ".ssh/",
	"credentials", "credentials.json", "credentials.yml", "credentials.yaml", "credentials.toml", "credentials.ini",
	"credentials.csv", "credentials.xml", "credentials.db",
	"*.credentials", ".credentials*", "client_secret*.json", "service-account*.json", "service_account*.json",
	".npmrc", ".pypirc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials", ".dockercfg",
	".docker/config.json",
	".aws/", ".azure/", ".gnupg/", ".kube/config", "*.tfstate", "*.tfstate.backup", ".vault-token",
}

// sieve is a compiled form of Rules. A folder that it excludes is not read.
type sieve struct {
	rules           Rules
	ignore, secrets []pattern
	paths           map[string]bool
	tracked         map[string]bool
	folders         map[string]bool // with tracked files; true if they look like secrets
	opened          bool            // one of them is true
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

// track records the tracked files and their parent folders, which must be read.
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

// ignored reports whether a pattern or a listed path excludes a path.
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

// listedFolder reports whether a folder is listed and not included again by a pattern.
func (s sieve) listedFolder(dir string) bool {
	if !s.listed(dir, true) {
		return false
	}
	last, ok := lastFit(s.ignore, dir, true)
	return !ok || !last.include
}

// secret reports whether a path looks like a secret by its name, or by that of a folder that is read only for its
// tracked files.
func (s sieve) secret(path string, folder bool) bool {
	if _, leads := s.folders[path]; s.tracked[path] || folder && leads {
		return false
	}
	return matches(s.secrets, path, folder) || s.opened && below(path, func(dir string) bool { return s.folders[dir] })
}

// below reports whether is holds for a parent folder of a path.
func below(path string, is func(dir string) bool) bool {
	for dir := parent(path); dir != "."; dir = parent(dir) {
		if is(dir) {
			return true
		}
	}
	return false
}

// out returns why a path below root is excluded, or "". Its parent folders are not checked.
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
	case refusedByGit(base(path), kind == fs.ModeSymlink):
		return ReasonName, nil
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
	include  bool // starts with !
	folders  bool // ends with /
	anchored bool // contains another /
}

// parsePatterns parses lines as git does, without blank lines and comments.
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
		glob = inside + "/**/*" // the folder's content, not the folder
	}
	p.glob = classes.Replace(braces.Replace(glob))
	if !doublestar.ValidatePattern(p.glob) || strings.Contains(p.glob, ":]") {
		return pattern{}, fmt.Errorf("invalid ignore pattern %q: use the syntax of .gitignore", text)
	}
	return p, nil
}

// doublestar supports {a,b}, unlike git, and not [[:alpha:]], unlike git.
var (
	braces  = strings.NewReplacer("{", `\{`, "}", `\}`, `\{`, `\{`, `\}`, `\}`, `\\`, `\\`)
	classes = strings.NewReplacer("[:alnum:]", "0-9A-Za-z", "[:alpha:]", "A-Za-z", "[:blank:]", " \t", "[:digit:]",
		"0-9", "[:lower:]", "a-z",
		"[:space:]", "\t-\r ", "[:upper:]", "A-Z", "[:xdigit:]", "0-9A-Fa-f")
)

// trimSpaces removes trailing spaces, except after a backslash.
func trimSpaces(s string) string {
	for strings.HasSuffix(s, " ") && !strings.HasSuffix(s, `\ `) {
		s = s[:len(s)-1]
	}
	return s
}

// matches reports whether the last matching pattern excludes the path.
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

// base returns the last element of a path.
func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
